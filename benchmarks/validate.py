"""What `pilothouse validate` costs for many manifests, from the start of the process to its end.

    python benchmarks/validate.py [manifests] [rounds]

A quarter each: Deployments of 40 lines, Services, ConfigMaps, and custom resources with a CEL rule; two admission
policies look at all of them. The first round compiles the modules into a folder of its own, and is not counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{n}
  namespace: team-{team}
  labels: {{app: web-{n}, tier: front}}
spec:
  replicas: 3
  selector:
    matchLabels:
      app: web-{n}
  template:
    metadata:
      labels:
        app: web-{n}
        tier: front
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1.{n}
        args: ["--port=8080", "--verbose"]
        env:
        - name: MODE
          value: production
        - name: POD
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        ports:
        - name: http
          containerPort: 8080
        readinessProbe:
          httpGet:
            path: /ready
            port: http
        resources:
          requests: {{cpu: 100m, memory: 64Mi}}
          limits: {{memory: 128Mi}}
      volumes:
      - name: config
        configMap:
          name: web-{n}
"""
_SERVICE = """apiVersion: v1
kind: Service
metadata:
  name: web-{n}
  namespace: team-{team}
spec:
  selector:
    app: web-{n}
  ports:
  - name: http
    port: 80
    targetPort: http
"""
_CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: web-{n}
  namespace: team-{team}
data:
  mode: production
  settings.ini: |
    [web]
    port = 8080
    workers = {n}
"""
_CUSTOM = """apiVersion: example.com/v1
kind: Backup
metadata:
  name: web-{n}
  namespace: team-{team}
spec:
  schedule: "0 3 * * *"
  keep: 7
  atMost: 30
"""
_SHARED = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: backups.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              schedule: {type: string}
              keep: {type: integer}
              atMost: {type: integer}
            x-kubernetes-validations:
            - rule: self.keep <= self.atMost
"""
_POLICY = """---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {name}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ["*"]
      apiVersions: ["*"]
      operations: [CREATE]
      resources: ["*"]
  validations:
  - expression: {expression}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {name}
spec:
  policyName: {name}
  validationActions: [Deny]
"""
_KINDS = (_DEPLOYMENT, _SERVICE, _CONFIG_MAP, _CUSTOM)


def write(folder: Path, count: int) -> None:
    policies = {
        "short-names": "object.metadata.name.size() < 64",
        "no-latest": "!has(object.spec) || !has(object.spec.template) || "
        "object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))",
    }
    shown = (_POLICY.format(name=name, expression=f'"{text}"') for name, text in policies.items())
    (folder / "shared.yaml").write_text(_SHARED + "".join(shown))
    for number in range(count):
        text = _KINDS[number % len(_KINDS)].format(n=number, team=number % 10)
        (folder / f"{number:05}.yaml").write_text(text)


def run(folder: Path, bytecode: str) -> tuple[float, float]:
    """Return processor and wall time of one run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    began, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "pilothouse.cli.main", "validate", str(folder)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    after = os.times()
    print(f"  {said.splitlines()[-1]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, time.perf_counter() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as bytecode:
        write(Path(name), count)
        times = [run(Path(name), bytecode) for _ in range(rounds + 1)][1:]
    cpu, wall = zip(*times, strict=True)
    print(f"{count} manifests: processor time best {min(cpu):.2f} s, median {statistics.median(cpu):.2f} s;", end=" ")
    print(f"wall time best {min(wall):.2f} s")


if __name__ == "__main__":
    main()
