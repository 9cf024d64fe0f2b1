"""spec.py - holds every request and answer against the cloud's OpenAPI file, where there is one

Without the file, PyYAML or jsonschema nothing is checked, and /_fake/state says so.
"""
import os
import re


class Nothing:
    violations = []

    def __init__(self, why_not):
        self.why_not = why_not

    def request(self, request):
        return None

    def reply(self, request, reply):
        return None


def load(folder, name, tweaks):
    if not folder or not name or not os.path.exists(os.path.join(folder, name)):
        return Nothing("no OpenAPI file (--specs or GPUB_SPECS)")
    try:
        import jsonschema
        import yaml
    except ImportError as e:
        return Nothing(str(e))
    with open(os.path.join(folder, name)) as f:
        document = yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    tweaks(document)
    return Validator(document, jsonschema.Draft7Validator)


def json_schema(node):
    """OpenAPI's `nullable` in JSON Schema's words."""
    if isinstance(node, list):
        return [json_schema(x) for x in node]
    if not isinstance(node, dict):
        return node
    node = {k: json_schema(v) for k, v in node.items()}
    if node.pop("nullable", False) is True and isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]
        if "enum" in node:
            node["enum"] = node["enum"] + [None]
    return node


class Validator:
    why_not = None

    def __init__(self, document, draft):
        self.draft, self.violations = draft, []
        self.components = json_schema(document.get("components", {}))
        self.operations = [(m.upper(), re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path) + "$"), op)
                           for path, item in document["paths"].items()
                           for m, op in item.items() if m in ("get", "post", "put", "patch", "delete")]

    def operation(self, request):
        """The most literal path wins: /instances/types is not /instances/{id}."""
        hits = [(pattern.pattern.count("[^/]+"), op) for method, pattern, op in self.operations
                if method == request.method and pattern.search(request.path)]
        return min(hits, key=lambda h: h[0])[1] if hits else None

    def check(self, holder, value, what):
        schema = holder.get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return None
        draft = self.draft(dict(json_schema(schema), components=self.components))
        for e in draft.iter_errors(value):
            text = "%s: %s: %s" % (what, "/".join(map(str, e.absolute_path)), e.message[:200])
            self.violations.append(text)
            return text
        return None

    def request(self, request):
        op = self.operation(request)
        if not op:
            self.violations.append("%s %s is not in the specification" % (request.method, request.path))
            return self.violations[-1]
        holder = op.get("requestBody", {})
        if not holder.get("required") and request.body is None:
            return None
        return self.check(holder, request.body, "request %s" % request.path)

    def reply(self, request, reply):
        answer = (self.operation(request) or {}).get("responses", {}).get(str(reply.status))
        if answer:
            self.check(answer, reply.body, "answer to %s" % request.path)
