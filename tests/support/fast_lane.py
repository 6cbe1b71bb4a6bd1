"""The fast lane: tests of every package that together take under a minute on two cores. `nox -s fast` runs them.

A file belongs to the lane if it takes a second at most, or if no faster file tries the package on a running server. The
times of tests are printed by `python -m pytest --durations=30 FOLDER`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
LANE = {
    "aggregator": (
        "aggregator/test_api_service_rules.py",
        "aggregator/test_api_services_on_a_server.py",
        "aggregator/test_autoregister_decisions.py",
        "aggregator/test_crd_registration.py",
        "aggregator/discovery/test_discovery_*.py",
        "aggregator/openapi/*.py",
    ),
    "apiserver": (
        "apiserver/*.py",
        "!apiserver/test_metric_tallies.py",
        "apiserver/admission/*.py",
        "apiserver/audit/*.py",
        "apiserver/endpoints/test_accept_clauses.py",
        "apiserver/endpoints/test_negotiated_forms.py",
        "apiserver/endpoints/test_authorized_verbs.py",
        "apiserver/filters/*.py",
        "apiserver/flowcontrol/*.py",
        "apiserver/http2/test_checks_in_both_roles.py",
        "apiserver/openapi/*.py",
        "apiserver/outbound/*.py",
        "apiserver/registry/*.py",
        "!apiserver/registry/test_continue_tokens.py",
        "!apiserver/registry/test_identity_of_new_objects.py",
        "!apiserver/registry/test_scale_subresource.py",
        "apiserver/server/*.py",
        "apiserver/serving/test_asgi_app.py",
        "apiserver/serving/test_secure_serving.py",
        "apiserver/serving/test_websocket_channels.py",
        "apiserver/spdy/*.py",
        "apiserver/storage/sqlite/*.py",
        "!apiserver/storage/sqlite/test_sqlite_full_disk.py",
        "!apiserver/storage/sqlite/test_sqlite_history.py",
        "apiserver/storage/test_store_restart.py",
        "apiserver/storage_cacher/*.py",
        "!apiserver/storage_cacher/test_cacher_m*.py",
        "!apiserver/storage_cacher/test_cacher_*_model.py",
        "apiserver/storage_encryption/*.py",
        "!apiserver/storage_encryption/test_transformers.py",
        "apiserver/webhook/*.py",
    ),
    "bench": ("bench/test_recordings.py", "bench/test_snapshot_objects.py"),
    "builder": (
        "builder/test_changes_of_authors.py",
        "builder/test_markers_show_themselves.py",
        "builder/test_own_functions_over_http.py",
        "builder/test_own_functions_writing.py",
        "builder/test_pydantic_models.py",
        "builder/test_schemas_of_*.py",
    ),
    "cli": (
        "cli/test_backup_command.py",
        "cli/test_command_line.py",
        "cli/test_offline_*.py",
        "cli/test_pki_command.py",
        "cli/test_validate.py",
    ),
    "client": (
        "client/test_client_config.py",
        "client/test_controller_runner.py",
        "client/test_delta_fifo.py",
        "client/test_discovery_client.py",
        "client/test_http_transport.py",
        "client/test_indexer.py",
        "client/test_leader_election.py",
        "client/test_reflector.py",
        "client/test_rest_client.py",
        "client/test_shared_informer.py",
        "client/test_workqueue*.py",
    ),
    "console": ("console/test_console_beside.py", "console/test_console_security.py"),
    "controllers": (
        "controllers/cronjob/*.py",
        "controllers/job/test_completion_indexes.py",
        "controllers/job/test_job_decisions.py",
        "controllers/podautoscaler/test_replica_calculator.py",
        "controllers/podautoscaler/test_scaling_*.py",
        "controllers/workloads/*.py",
        "controllers/test_daemon_set_decisions.py",
        "controllers/test_deployment_arithmetic.py",
        "controllers/test_desired_endpoints.py",
        "controllers/test_endpoints_updates.py",
        "controllers/test_garbage_collector.py",
        "controllers/test_namespace_controller.py",
        "controllers/test_replica_set_controller.py",
        "controllers/test_stateful_set_decisions.py",
        "controllers/test_volume_bindings.py",
    ),
    "controlplane": (
        "controlplane/certificates/*.py",
        "controlplane/shared_keys/test_key_rotation.py",
        "controlplane/test_admission_configuration.py",
        "controlplane/test_tracing_configuration.py",
        "controlplane/test_*_options.py",
        "controlplane/test_controller_selection.py",
        "controlplane/test_data_dir.py",
        "controlplane/test_loopback_*.py",
    ),
    "explore": ("explore/test_classify_and_report.py", "explore/test_scenarios.py"),
    "extensions": (
        "extensions/schema/*.py",
        "!extensions/schema/test_schema_rules_at_work.py",
        "extensions/test_definition_*.py",
        "extensions/test_naming_decisions.py",
        "extensions/test_writes_of_custom_resources.py",
    ),
    "kinds": ("kinds/*.py",),
    "kube": (
        "kube/*/test_*_rules.py",
        "kube/abac/*.py",
        "kube/admission/*.py",
        "!kube/admission/test_*polic*.py",
        "!kube/admission/test_*quota*.py",
        "!kube/admission/test_chosen_plugins.py",
        "!kube/admission/test_*webhooks*.py",
        "kube/authentication/*.py",
        "kube/authorization/*.py",
        "kube/autoscaling/*.py",
        "kube/batch/test_cron_*.py",
        "kube/core/pods/test_pod_*.py",
        "!kube/core/pods/test_pod_binding_and_eviction.py",
        "!kube/core/pods/test_pod_connections.py",
        "kube/core/services/test_service_*.py",
        "!kube/core/services/test_service_[apr]*.py",
        "kube/flowcontrol/test_flow_schema_table.py",
        "kube/node_authorizer/*.py",
        "kube/rbac/test_rbac_authorizer.py",
        "kube/resource/test_resource_*.py",
        "kube/test_finalizer_names.py",
        "kube/validation/*.py",
    ),
    "machinery": (
        "machinery/apply/test_managed_entries.py",
        "machinery/cel/*.py",
        "!machinery/cel/test_admission_expressions.py",
        "!machinery/cel/test_interpreter_against_native_runtime.py",
        "machinery/codec/test_body_decoder.py",
        "machinery/protobuf/test_protobuf_reading.py",
        "machinery/schema/*.py",
        "!machinery/schema/test_schema_properties.py",
        "machinery/*.py",
        "!machinery/test_bounded_caches.py",
        "!machinery/test_caches_of_ours.py",
        "!machinery/test_json_patch.py",
        "!machinery/test_label_selectors.py",
        "!machinery/test_merge_patch.py",
        "!machinery/test_strategic_patch.py",
        "machinery/wire_facts/*.py",
    ),
    "nodes": (
        "nodes/test_agenda_and_addresses.py",
        "nodes/test_kubelet_sessions.py",
        "nodes/test_pod_lives.py",
        "nodes/test_simulated_behaviors.py",
        "nodes/test_stages.py",
    ),
    "operator": (
        "operator/test_conditions.py",
        "operator/test_kinds.py",
        "operator/test_manager.py",
        "operator/test_predicates_and_logs.py",
        "operator/test_reviews.py",
    ),
    "scaffold": ("scaffold/test_cluster_manifests.py", "scaffold/test_reference_pages.py"),
    "scheduler": ("scheduler/*.py", "!scheduler/test_scheduling_on_a_server.py"),
    "testing": ("testing/test_snapshots_of_a_server.py",),
}
"""Package of pilothouse/ -> patterns of its test files; a pattern with `!` takes files away again."""


@cache
def files() -> frozenset[Path]:
    """Return the test files of the lane."""
    return frozenset(file for package in LANE for file in files_of(package))


def files_of(package: str) -> set[Path]:
    chosen: set[Path] = set()
    for pattern in LANE[package]:
        if pattern.startswith("!"):
            chosen -= matching(pattern[1:])
        else:
            chosen |= matching(pattern)
    return chosen


def matching(pattern: str) -> set[Path]:
    return {file for file in TESTS.glob(pattern) if file.name.startswith("test_")}
