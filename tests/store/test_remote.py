"""Stores under URLs: S3 (a server of its own, over loopback), HTTP, memory; pushers and readers at once."""

from __future__ import annotations

import functools
import http.server
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="stores under URLs need fsspec")
pytest.importorskip("cryptography", reason="signatures need the package cryptography")

from toolc.runtime import BundleError, Store, StoreError, load, open_store
from toolc.runtime.store.remote import Remote

from .handmade import key, keyed, new_signer


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    """Options of s3fs for a server with the bucket ``toolc``."""
    pytest.importorskip("s3fs", reason="s3:// needs s3fs")
    server_of = pytest.importorskip("moto.server", reason="the S3 server is that of moto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    options = {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "key": "testing",
        "secret": "testing",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    urllib.request.urlopen(urllib.request.Request(f"{options['endpoint_url']}/toolc", method="PUT")).close()
    yield options
    server.stop()


@pytest.fixture(params=["s3", "memory"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store."""
    if request.param == "memory":
        return open_store(f"memory://{tmp_path.name}")
    return open_store(f"s3://toolc/{tmp_path.name}", **request.getfixturevalue("s3"))


def test_push_pull_list_prune(remote: Store, tmp_path: Path) -> None:
    signer, public = new_signer(tmp_path, "ours")
    with pytest.raises(StoreError, match="does not hold"):
        load(remote, key())
    assert remote.list() == [] and not remote.has(key())
    assert remote.put(keyed(), signer) and not remote.put(keyed(), signer) and remote.put(keyed(1))
    assert {(row.key, row.signers) for row in remote.list()} == {(key(), (signer.public,)), (key(1), ())}
    assert remote.list(details=True)[0].meta["recipe"] == keyed().meta["recipe"]
    bundle = load(remote, key(), allow=[public])
    assert bundle.digest == keyed().digest and bundle.vocab.digest == keyed().vocab.digest
    assert str(tmp_path / "cache") in bundle.name  # mapped from where it is kept
    with pytest.raises(BundleError, match="no allowed key"):
        load(remote, key(1), allow=[public])
    done = remote.prune(max_bytes=0)
    assert set(done.bundles) == {key(), key(1)} and done.vocabs == ()
    assert [item.name for item in remote.files.items()] == [f"{keyed().vocab.digest}.vocab"]
    assert load(remote, key(), allow=[public]).digest == keyed().digest  # kept here
    assert remote.prune(vocabs=True).vocabs == (keyed().vocab.digest,)


def test_a_url_alone_is_enough(s3: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", s3["endpoint_url"]),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    where = f"s3://toolc/{tmp_path.name}"
    open_store(where).put(keyed())
    assert load(where, key()).digest == keyed().digest


def test_pushers_at_once_lose_nothing(remote: Store, tmp_path: Path) -> None:
    signers = [new_signer(tmp_path, str(number))[0] for number in range(4)]
    failed: list[BaseException] = []

    def work(turn: int) -> None:
        try:
            for number in range(4):
                remote.put(keyed((number + turn) % 4), signers[turn])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for number in range(4):
        for signer in signers:
            assert remote.get(key(number), [signer.public]).digest == keyed(number).digest


def test_a_web_server(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="http:// needs aiohttp")
    signer, public = new_signer(tmp_path, "ours")
    open_store(tmp_path / "s").put(keyed(), signer)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            where = f"http://127.0.0.1:{server.server_address[1]}/s"
            assert load(where, key(), allow=[public]).digest == keyed().digest
            with pytest.raises(StoreError, match="does not hold"):
                load(where, key(1))
            with pytest.raises(StoreError):
                open_store(where).put(keyed(1))
        finally:
            server.shutdown()
            thread.join()
    with pytest.raises(StoreError, match="check the URL"):
        load(where, key(1))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_places_that_are_none() -> None:
    with pytest.raises(StoreError, match="nowhere"):
        open_store("nowhere://x")
    with pytest.raises(StoreError, match="size limit"):
        open_store("memory://x", max_bytes=5)
    with pytest.raises(StoreError, match="at most 3"):
        files = Remote("memory://size")
        files.write("a", b"1234")
        files.read("a", 3)


def test_a_bucket_that_is_not_there(s3: dict[str, Any]) -> None:
    """It is not made: it would be another's, or a slip of the pen."""
    store = open_store("s3://toolc-typo/a", **s3)
    for call in (store.list, lambda: store.put(keyed()), lambda: store.prune(max_bytes=0)):
        with pytest.raises(StoreError, match="toolc-typo"):
            call()
    assert store.files.fs.ls("") == ["toolc"]  # type: ignore[attr-defined]


def test_sizes_that_are_not_told(remote: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a web server: what is kept by size would be kept by none."""
    remote.put(keyed())
    items = remote.files.items()
    monkeypatch.setattr(remote.files, "items", lambda: [item._replace(size=None) for item in items])
    assert [row.size for row in remote.list()] == [None]
    with pytest.raises(StoreError, match="sizes of the files are not told"):
        remote.prune(max_bytes=0)
    assert remote.has(key())
