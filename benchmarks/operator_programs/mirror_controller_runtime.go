// Command mirror copies each ConfigMap with the label mirror=true into the namespace "mirror".
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "demo.example.com/mirror"

type Mirror struct{ client.Client }

func (r *Mirror) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	mirrored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: "mirror"}}
	if !source.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, mirrored)); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(&source, finalizer) {
			return ctrl.Result{}, r.Update(ctx, &source)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := r.Update(ctx, &source); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, mirrored, func() error {
		mirrored.Data = source.Data
		return nil
	})
	return ctrl.Result{}, err
}

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	labelled, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"mirror": "true"}})
	if err != nil {
		os.Exit(1)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}, builder.WithPredicates(labelled)).
		Complete(&Mirror{mgr.GetClient()}); err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
