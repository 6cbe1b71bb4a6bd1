"""Compositions: pipelines of steps that embed objects of any kind, and patches with deep alternatives."""

from __future__ import annotations

from schema_shapes import Shape, anything, choice, embedded, list_map, listing, number, rule, struct, table, text

from large_definitions.large import AGE, CONDITIONS, Large, large


def _transform() -> Shape:
    return struct(
        ["type"],
        type=choice("map", "math", "match", "string", "convert"),
        map=table(anything({"any": ["thing"]})),
        math=struct(type=choice("Multiply", "ClampMin"), multiply=number(2, format="int64")),
        match=struct(
            patterns=listing(struct(type=choice("literal", "regexp"), literal=text(), result=anything({"x": None}))),
            fallbackTo=choice("Value", "Input", default="Value"),
        ),
        string=struct(type=choice("Format", "Trim"), fmt=text("%s"), trim=text("-")),
        convert=struct(["toType"], toType=choice("string", "int64", "bool"), format=choice("none", "quantity")),
    )


def _patch() -> Shape:
    policy = struct(fromFieldPath=choice("Optional", "Required"), toFieldPath=choice("Replace", "MergeObjects"))
    return struct(
        type=choice("FromCompositeFieldPath", "CombineFromComposite", default="FromCompositeFieldPath"),
        fromFieldPath=text("spec.size"),
        toFieldPath=text("spec.forProvider.size"),
        combine=struct(
            ["variables", "strategy"],
            strategy=choice("string"),
            string=struct(["fmt"], fmt=text("%s-%s")),
            variables=listing(struct(["fromFieldPath"], fromFieldPath=text("metadata.name")), minItems=1),
        ),
        transforms=listing(_transform()),
        policy=policy,
    )


def _template() -> Shape:
    base = embedded(
        {"apiVersion": "cloud.example.com/v1", "kind": "Bucket", "metadata": {"name": "b"}, "spec": {"deep": [{}]}}
    )
    return struct(
        ["name"],
        name=text("bucket", maxLength=63),
        base=base,
        patches=listing(_patch()),
        readinessChecks=listing(
            struct(["type"], type=choice("MatchString", "None"), fieldPath=text(), matchString=text())
        ),
    )


def _step() -> Shape:
    return struct(
        ["step", "functionRef"],
        step=text("render", maxLength=63),
        functionRef=struct(["name"], name=text("function", maxLength=253)),
        input=embedded({"apiVersion": "fn.example.com/v1", "kind": "Input", "anything": {"goes": [1, "two", None]}}),
        credentials=list_map(
            struct(["name"], name=text("creds", maxLength=63), source=choice("Secret", "None")), "name", maxItems=8
        ),
    )


def compositions() -> Large:
    patch = _patch()
    type_reference = struct(["apiVersion", "kind"], apiVersion=text("example.com/v1"), kind=text("XBucket"))
    immutable = [rule("self == oldSelf", "Value is immutable")]
    spec = struct(
        ["compositeTypeRef"],
        [rule("self.mode == 'Pipeline' ? has(self.pipeline) : has(self.resources)", "the mode needs its part")],
        compositeTypeRef=type_reference.but(**{"x-kubernetes-validations": immutable}),
        mode=choice("Pipeline", "Resources", default="Resources"),
        pipeline=list_map(_step(), "step", maxItems=99),
        patchSets=list_map(
            struct(["name", "patches"], name=text("shared", maxLength=63), patches=listing(patch)), "name", maxItems=32
        ),
        resources=list_map(_template(), "name", maxItems=64),
        environment=struct(patches=listing(patch), defaultData=table(anything({"a": {"b": 1}}))),
    )
    columns = [
        {"name": "XR-KIND", "type": "string", "jsonPath": ".spec.compositeTypeRef.kind"},
        {"name": "XR-APIVERSION", "type": "string", "jsonPath": ".spec.compositeTypeRef.apiVersion"},
        AGE,
    ]
    return large("Composition", spec, struct(conditions=CONDITIONS), additionalPrinterColumns=columns)
