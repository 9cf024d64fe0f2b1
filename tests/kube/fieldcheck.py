"""fieldcheck.py - unknown members, required members and defaults, as an API server checks them

Understands the part of structural OpenAPI that the CRDs here use.  For built-in kinds BUILTIN lists the members
of what gpubroker sends; a kind that is not there is not checked.
"""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def check(value, schema, path, unknown, invalid):
    """Appends to unknown and invalid; fills in defaults in place."""
    want = TYPES.get(schema.get("type"))
    if want and (not isinstance(value, want) or (want is int and isinstance(value, bool))):
        if not (schema.get("x-kubernetes-int-or-string") and isinstance(value, (int, str))):
            invalid.append(f"{path}: Invalid value: must be of type {schema['type']}")
            return
    if isinstance(value, dict):
        props, extra = schema.get("properties", {}), schema.get("additionalProperties")
        for name, sub in props.items():
            if name not in value and "default" in sub:
                value[name] = sub["default"]
        for name in schema.get("required", ()):
            if name not in value:
                invalid.append(f"{path}.{name}: Required value")
        for name in list(value):
            here = f"{path}.{name}" if path else name
            if name in props:
                check(value[name], props[name], here, unknown, invalid)
            elif isinstance(extra, dict):
                check(value[name], extra, here, unknown, invalid)
            elif props and not schema.get("x-kubernetes-preserve-unknown-fields"):
                unknown.append(here)
                del value[name]
    elif isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), f"{path}[{i}]", unknown, invalid)
    elif isinstance(value, str):
        if "enum" in schema and value not in schema["enum"]:
            invalid.append(f"{path}: Unsupported value: {value!r}")
        if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", 1 << 30):
            invalid.append(f"{path}: Invalid value: length {len(value)}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            invalid.append(f"{path}: Invalid value: {value!r}")


def names(text, **sub):
    """{"properties": …} from a list of names; sub gives the schema of those that are looked into."""
    return {"properties": {n: sub.get(n, {}) for n in text.split()}}


def every(schema):
    return {"type": "array", "items": schema}


META = names("name generateName namespace labels annotations uid resourceVersion creationTimestamp generation "
             "deletionTimestamp deletionGracePeriodSeconds finalizers ownerReferences managedFields selfLink",
             labels={"type": "object", "additionalProperties": {"type": "string"}},
             annotations={"type": "object", "additionalProperties": {"type": "string"}})
CONTAINER = names(
    "name image args command env envFrom imagePullPolicy ports resources securityContext volumeMounts workingDir "
    "livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy stdin tty",
    env=every(names("name value valueFrom")),
    volumeMounts=every(names("name mountPath subPath readOnly mountPropagation")),
    resources=names("limits requests claims"),
    securityContext=names("allowPrivilegeEscalation capabilities privileged runAsUser runAsGroup runAsNonRoot "
                          "readOnlyRootFilesystem seccompProfile"))
POD_SPEC = names(
    "containers initContainers volumes nodeSelector nodeName tolerations affinity priorityClassName priority "
    "restartPolicy hostNetwork hostPID hostIPC dnsPolicy serviceAccountName serviceAccount securityContext "
    "runtimeClassName terminationGracePeriodSeconds activeDeadlineSeconds imagePullSecrets schedulerName "
    "automountServiceAccountToken enableServiceLinks",
    containers=every(CONTAINER), initContainers=every(CONTAINER),
    tolerations=every(names("key operator value effect tolerationSeconds")),
    volumes=every(names("name hostPath emptyDir configMap secret projected persistentVolumeClaim",
                        hostPath=names("path type"))))
TEMPLATE = names("metadata spec", metadata=META, spec=POD_SPEC)
TOP = "apiVersion kind metadata spec status"

BUILTIN = {
    "DaemonSet": names(TOP, metadata=META, spec=names(
        "selector template updateStrategy minReadySeconds revisionHistoryLimit", template=TEMPLATE,
        selector=names("matchLabels matchExpressions"),
        updateStrategy=names("type rollingUpdate"))),
    "Pod": names(TOP, metadata=META, spec=POD_SPEC),
    "Job": names(TOP, metadata=META, spec=names(
        "template backoffLimit activeDeadlineSeconds ttlSecondsAfterFinished completions parallelism selector "
        "completionMode suspend manualSelector", template=TEMPLATE)),
    "Node": names(TOP, metadata=META, spec=names(
        "unschedulable taints providerID podCIDR podCIDRs configSource externalID")),
    "Eviction": names("apiVersion kind metadata deleteOptions", metadata=META, deleteOptions=names(
        "apiVersion kind gracePeriodSeconds preconditions propagationPolicy dryRun")),
    "Secret": names("apiVersion kind metadata data stringData type immutable", metadata=META),
    "ConfigMap": names("apiVersion kind metadata data binaryData immutable", metadata=META),
    "Namespace": names(TOP, metadata=META),
    "Lease": names("apiVersion kind metadata spec", metadata=META, spec=names(
        "holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy preferredHolder")),
}
