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


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_signature_that_is_put_while_others_prune(
    moment: str, remote: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle is there with its signature, or not at all."""
    signer, public = new_signer(tmp_path, "ours")
    remote.put(keyed(), signer)
    other, remove = Store(remote.files), remote.files.remove
    others = [*"x"]

    def meanwhile(name: str) -> None:
        if moment == "after":
            remove(name)
        if name.endswith(".toolc") and others:
            others.pop()
            other.put(keyed(), signer)
        if moment == "before":
            remove(name)

    monkeypatch.setattr(remote.files, "remove", meanwhile)
    remote.prune(max_bytes=0)
    assert not others and remote.has(key()) is (moment == "after")
    if moment == "after":
        assert remote.get(key(), [public]).digest == keyed().digest


def test_a_signature_that_is_pruned_while_it_is_put(
    remote: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, public = new_signer(tmp_path, "ours")
    remote.put(keyed(), signer)
    other, sound = Store(remote.files), Store._is_sound

    def pruned(store: Store, *rest: object) -> bool:
        other.prune(max_bytes=0)
        return sound(store, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "_is_sound", pruned)
    remote.put(keyed(), signer)
    assert remote.get(key(), [public]).digest == keyed().digest


def test_urls_in_every_writing(tmp_path: Path) -> None:
    """Schemes in capitals, the root of a memory, and a file that is cached on the way."""
    open_store(f"MEMORY://{tmp_path.name}").put(keyed())
    for url in (f"memory://{tmp_path.name}", f"Memory:///{tmp_path.name}/", f"simplecache::memory://{tmp_path.name}"):
        assert open_store(url).get(key()).digest == keyed().digest, url
    store = open_store("memory://")
    assert not store.files.path("x") and store.place == "memory://"
    store.put(keyed(7))
    assert store.get(key(7)).digest == keyed(7).digest
    store.files.remove(f"{key(7)}.toolc")


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open this store"):
        open_store(f"zip://x::file://{tmp_path}/absent.zip")


def test_times_that_are_not_told(remote: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a web server: no date is made up, and what has none is not taken for old."""
    remote.put(keyed())
    listed = remote.files.fs.ls(remote.files.root, detail=True)  # type: ignore[attr-defined]
    bare = [{name: entry[name] for name in ("name", "type", "size")} for entry in listed]
    monkeypatch.setattr(remote.files.fs, "ls", lambda *_, **__: bare)  # type: ignore[attr-defined]
    assert [row.used for row in remote.list()] == [None]
    assert remote.prune(older_than=1).bundles == ()


def test_sizes_that_are_not_told(remote: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a web server: what is kept by size would be kept by none."""
    remote.put(keyed())
    items = remote.files.items()
    monkeypatch.setattr(remote.files, "items", lambda: [item._replace(size=None) for item in items])
    assert [row.size for row in remote.list()] == [None]
    with pytest.raises(StoreError, match="sizes of the files are not told"):
        remote.prune(max_bytes=0)
    assert remote.has(key())
