"""Certificates: rules over durations and old values, formats, sets, defaults and many columns."""

from __future__ import annotations

from schema_shapes import Shape, choice, flag, list_map, listing, number, rule, struct, table, text, unique

from large_definitions.large import AGE, CONDITIONS, READY, Large, large

_RULES = [
    rule(
        "has(self.commonName) || size(self.dnsNames) > 0 || size(self.ipAddresses) > 0", "at least one name is needed"
    ),
    rule("!has(self.renewBefore) || duration(self.renewBefore) < duration(self.duration)", "renewed too early"),
    rule("self.secretName == oldSelf.secretName", "secretName is immutable", reason="FieldValueForbidden"),
]
_COLUMNS = [
    READY,
    {"name": "Secret", "type": "string", "jsonPath": ".spec.secretName"},
    {"name": "Issuer", "type": "string", "jsonPath": ".spec.issuerRef.name", "priority": 1},
    {"name": "Revision", "type": "integer", "jsonPath": ".status.revision"},
    {"name": "Expires", "type": "date", "jsonPath": ".status.notAfter"},
    AGE,
]


def _private_key() -> Shape:
    return struct(
        [],
        [rule("self.algorithm != 'Ed25519' || !has(self.size)", "size must not be set for Ed25519")],
        algorithm=choice("RSA", "ECDSA", "Ed25519", default="RSA"),
        encoding=choice("PKCS1", "PKCS8", default="PKCS1"),
        size=number(2048, minimum=256, maximum=8192),
        rotationPolicy=choice("Never", "Always"),
    )


def _spec() -> Shape:
    reference = struct(["name"], name=text("issuer", maxLength=253), kind=text(default="Issuer"), group=text("certs"))
    keystore = struct(["create"], create=flag(), passwordSecretRef=struct(["name"], name=text("pass"), key=text("k")))
    subject = struct(
        **{each: listing(text(each)) for each in ("organizations", "countries", "localities", "provinces")},
        serialNumber=text("1"),
    )
    return struct(
        ["secretName", "issuerRef"],
        _RULES,
        secretName=text("cert", maxLength=253),
        issuerRef=reference,
        commonName=text("example.com", maxLength=64),
        dnsNames=unique(text("example.com", maxLength=253), maxItems=100),
        ipAddresses=unique(text("10.0.0.1", format="ipv4", maxLength=45), maxItems=100),
        emailAddresses=listing(text("a@example.com", format="email")),
        duration=text("2160h", maxLength=20, default="2160h"),
        renewBefore=text("360h", maxLength=20),
        isCA=flag(),
        usages=unique(choice("digital signature", "key encipherment", "server auth"), maxItems=20),
        privateKey=_private_key(),
        subject=subject,
        keystores=struct(jks=keystore, pkcs12=keystore),
        secretTemplate=struct(annotations=table(text()), labels=table(text())),
        additionalOutputFormats=list_map(struct(["type"], type=choice("DER", "CombinedPEM")), "type", maxItems=2),
    )


def certificates() -> Large:
    status = struct(
        conditions=CONDITIONS,
        notAfter=text("2027-01-01T00:00:00Z", format="date-time"),
        revision=number(3),
        nextPrivateKeySecretName=text("next"),
    )
    fields = [{"jsonPath": ".spec.issuerRef.name"}, {"jsonPath": ".spec.secretName"}]
    return large("Certificate", _spec(), status, additionalPrinterColumns=_COLUMNS, selectableFields=fields)
