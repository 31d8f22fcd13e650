"""Mutual TLS between the nodes of a run.

What lives here: the two contexts of a node, from the PEM of its credentials.  Both ends must show a
certificate of the run's own authority; names in it are not checked, for any member may be anywhere.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hdphrs.errors import UsageError
from hdphrs.records import dataclass
from hdphrs.wire.settings import Credentials


@dataclass(frozen=True, slots=True)
class TlsContexts:
    """How this node dials and how it listens."""

    client: ssl.SSLContext
    server: ssl.SSLContext


def mutual_tls(credentials: Credentials) -> TlsContexts:
    """Contexts that accept nobody but holders of a certificate of `credentials.authority`.

    Raises:
        UsageError: the credentials are malformed or do not belong together.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        with _readable_as_file(credentials.certificate + b"\n" + credentials.key) as path:
            for context in (client, server):
                context.minimum_version = ssl.TLSVersion.TLSv1_3
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(cadata=credentials.authority.decode("ascii"))
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"the TLS credentials of this node do not work: {error}") from error
    return TlsContexts(client, server)


@contextmanager
def _readable_as_file(data: bytes) -> Iterator[str]:
    """A path under which `data` can be read meanwhile: the ssl module takes a key from nothing but a file.

    On Linux it is memory of this process; elsewhere, and where that is refused, a file of mode 0600, deleted at once.
    """
    descriptor = _memory()
    if descriptor is not None:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as named:
            named.write(data)
            named.flush()
            yield named.name


def _memory() -> int | None:
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("hdphrs-credentials", os.MFD_CLOEXEC)
    return None
