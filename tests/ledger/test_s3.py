"""A ledger in an S3, which moto serves on this machine; runs of several processes at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdphrs.ledger import Entry, open_store
from tests.ledger.support import BYTES_MAX, Opener, entry_of, memo_of, right

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket, and where its server is."""
    import s3fs

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="ledgers")
    yield "s3://ledgers/mine"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_an_s3_holds_a_ledger(bucket: str) -> None:
    opener = Opener(bucket)
    first = opener()
    assert first.labels() == []
    first.write([entry_of(number) for number in range(20)])
    second = opener()
    assert right(second, range(30)) == 20
    assert second.verify(remove=False).sound == 20
    assert second.figures().entries == 20
    client = boto3.client("s3")
    names = [found["Key"] for found in client.list_objects_v2(Bucket="ledgers")["Contents"]]
    (name,) = [name for name in names if f"/{memo_of(3).hex()}-" in name]
    client.put_object(Bucket="ledgers", Key=name, Body=b"x")
    assert right(opener(), range(30)) == 19
    assert len(opener.complaints) == 1
    assert second.shrink(0) == 20
    assert right(opener(), range(30)) == 0


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_with_a_key_nobody_plants_a_value_in_a_shared_bucket(bucket: str) -> None:
    """Whoever can write to it has an object of his own, and one of ours under the name of another call."""
    key = bytes(range(32))
    complaints: list[str] = []
    store = open_store(bucket, BYTES_MAX, complaints.append, key=key)
    store.write([entry_of(number) for number in range(5)])
    planted = Entry(memo_of(7), memo_of(7), b"\1", "f", 1.0, b"planted")
    open_store(bucket, BYTES_MAX, complaints.append).write([planted])
    client = boto3.client("s3")
    names = {found["Key"] for found in client.list_objects_v2(Bucket="ledgers")["Contents"]}
    one, other = (next(name for name in names if f"/{memo_of(number).hex()}-" in name) for number in (1, 2))
    client.copy_object(Bucket="ledgers", Key=one, CopySource={"Bucket": "ledgers", "Key": other})
    store = open_store(bucket, BYTES_MAX, complaints.append, key=key)
    assert right(store, range(10)) == 4
    assert store.unsigned == 2
    verdict = store.verify(remove=True)
    assert (verdict.sound, verdict.damaged, verdict.unsigned) == (4, 0, 2)
    assert store.figures().entries == 4
    assert store.shrink(0) == 4
    assert complaints == []


def write_some(location: str, writer: int) -> None:
    """One of several processes."""
    store = Opener(location)()
    for number in range(100):
        store.write([entry_of(number), entry_of(1000 * writer + number)])
    store.close()


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_several_processes_write_at_once(tmp_path: Path, kind: str) -> None:
    location = str(tmp_path / "ledger") if kind == "directory" else f"file://{tmp_path}/objects"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_some, args=(location, writer)) for writer in (1, 2, 3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(60)
        assert process.exitcode == 0
    opener = Opener(location)
    store = opener()
    assert right(store, range(4000)) == 400
    assert opener.complaints == []
    store.close()
