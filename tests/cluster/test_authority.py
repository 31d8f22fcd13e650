"""Certificates of one run: trusted in it, and nowhere else."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from hdphrs.cluster.authority import CERTIFIED_NAME, Authority
from hdphrs.wire.settings import Credentials


def context(kind: int, credentials: Credentials, folder: Path) -> ssl.SSLContext:
    result = ssl.SSLContext(kind)
    certificate, key = folder / "certificate", folder / "key"
    certificate.write_bytes(credentials.certificate)
    key.write_bytes(credentials.key)
    result.load_cert_chain(certificate, key)
    result.load_verify_locations(cadata=credentials.authority.decode())
    result.verify_mode = ssl.CERT_REQUIRED
    result.minimum_version = ssl.TLSVersion.TLSv1_3
    return result


def shake_hands(client: Credentials, server: Credentials, folder: Path) -> None:
    """A mutual TLS handshake in memory; raises if one side refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        context(ssl.PROTOCOL_TLS_CLIENT, client, folder).wrap_bio(to_client, to_server, server_hostname=CERTIFIED_NAME),
        context(ssl.PROTOCOL_TLS_SERVER, server, folder).wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert [end.version() for end in ends] == ["TLSv1.3", "TLSv1.3"]


def test_two_nodes_of_a_run_trust_each_other(tmp_path: Path) -> None:
    authority = Authority()
    shake_hands(authority.issue(0), authority.issue(1), tmp_path)
    shake_hands(authority.issue(1), authority.issue(0), tmp_path)


def test_a_node_of_another_run_is_refused_by_either_end(tmp_path: Path) -> None:
    ours, theirs = Authority().issue(0), Authority().issue(0)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ours, theirs, tmp_path)
    posing = Credentials(certificate=theirs.certificate, key=theirs.key, authority=ours.authority)
    with pytest.raises(ssl.SSLError):
        shake_hands(posing, ours, tmp_path)


def test_a_node_cannot_issue_certificates_and_its_own_last_some_days() -> None:
    certificate = x509.load_pem_x509_certificate(Authority().issue(3).certificate)
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    now = datetime.datetime.now(datetime.UTC)
    assert certificate.not_valid_before_utc < now - datetime.timedelta(hours=23)
    assert now + datetime.timedelta(days=7) < certificate.not_valid_after_utc
    assert certificate.not_valid_after_utc < now + datetime.timedelta(days=60)
