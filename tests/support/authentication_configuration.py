"""A configuration file of authentication that trusts one issuer of ID tokens."""

from __future__ import annotations

import textwrap

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"


def jwt(url: str = "https://a", *, ca: str = "", audiences: str = "[me]", issuer: str = "", **changed: str) -> str:
    fields = {"claimMappings": "{username: {claim: sub, prefix: ''}}"} | changed
    authority = f"certificateAuthority: |\n{textwrap.indent(ca, '      ')}" if ca else ""
    lines = "\n".join(f"  {name}: {value}" for name, value in fields.items())
    return (
        f"{HEAD}jwt:\n- issuer:\n    url: {url}\n    audiences: {audiences}\n    {issuer}\n    {authority}\n{lines}\n"
    )
