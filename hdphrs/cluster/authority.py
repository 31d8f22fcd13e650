"""The certificate authority of one run.

What lives here: an authority whose key never leaves this process and is forgotten with it, and the certificates that
it issues to the nodes.  Used only when a node runs on another host; importing this module costs some 50 ms, so import
it late.
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hdphrs.wire.settings import Credentials

VALID_DAYS = 30
"""Longer than a run lasts; certificates are looked at whenever two nodes connect."""

CLOCK_SKEW_DAYS = 1
"""How far another host's clock may be behind ours."""

CERTIFIED_NAME = "node.hdphrs.invalid"
"""The one DNS name in every certificate: a node is known by its run, not by its address."""


class Authority:
    """Mints certificates that are worth something in this run and nowhere else."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name("hdphrs run")
        self._certificate = (
            _builder(name, name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(issues=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def issue(self, number: int) -> Credentials:
        """A certificate and key for the node with this number in the plan, for both ends of a connection."""
        key = ec.generate_private_key(ec.SECP256R1())
        ours = self._key.public_key()
        certificate = (
            _builder(_name(f"hdphrs node {number}"), self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(issues=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(CERTIFIED_NAME)]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ours), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Credentials(
            certificate=certificate.public_bytes(serialization.Encoding.PEM),
            key=key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
            authority=self._certificate.public_bytes(serialization.Encoding.PEM),
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=CLOCK_SKEW_DAYS))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
    )


def _usage(*, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not issues,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issues,
        crl_sign=issues,
        encipher_only=False,
        decipher_only=False,
    )
