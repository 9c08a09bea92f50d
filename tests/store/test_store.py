"""Stores in folders: keys, sound files only, eviction, signatures, what a service sees."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="signatures need the package cryptography")

from toolc.runtime import Bundle, BundleError, StoreError, Vocab, load, open_store
from toolc.runtime.store.key import key_of
from toolc.runtime.store.signing import PublicKey, signature_name
from toolc.runtime.store.store import Put

from .handmade import key, keyed, new_signer


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".lock"}


def test_put_get_list_has(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    assert store.list() == [] and not store.has(key())
    assert store.put(keyed()) and not store.put(keyed()) and store.put(keyed(1))
    assert names(tmp_path / "s") == {f"{key()}.toolc", f"{key(1)}.toolc", f"{keyed().vocab.digest}.vocab"}
    back = store.get(key())
    assert back.digest == keyed().digest and back.vocab.digest == keyed().vocab.digest
    assert {row.key for row in store.list()} == {key(), key(1)} and store.has(key(1))
    row = next(row for row in store.list(details=True) if row.key == key())
    assert row.meta == keyed().meta and row.size == os.path.getsize(tmp_path / "s" / f"{key()}.toolc")
    assert Bundle.open(tmp_path / "s" / f"{key()}.toolc").digest == back.digest  # the vocab lies beside it
    assert open_store(f"file://{tmp_path}/s").get(key()).digest == back.digest
    assert load(tmp_path / "s", key(1)).digest == keyed(1).digest


def test_the_key_depends_on_what_makes_a_bundle_and_on_nothing_else() -> None:
    meta = keyed().meta
    assert key_of(meta) == key_of({**meta, "counts": {}, "spec": {**meta["spec"], "name": "x"}}) == key()
    others = [
        {**meta, "format": 2},
        {**meta, "recipe": "01" * 16},
        {**meta, "vocab_digest": "0" * 32},
        {**meta, "spec": {**meta["spec"], "kind": "schema"}},
        {**meta, "spec": {**meta["spec"], "digest": "1" * 32}},
    ]
    assert len({key_of(other) for other in [meta, *others]}) == 6
    for field in ("format", "recipe", "vocab_digest", "spec"):
        with pytest.raises(BundleError, match=field):
            key_of({name: value for name, value in meta.items() if name != field})


def edited(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def renamed(path: Path) -> None:
    os.replace(path.with_name(f"{key(1)}.toolc"), path)


def rewritten(path: Path) -> None:
    """Edited by one who knows the format: every digest is right, and the meta names another spec."""
    keyed(2).write(path)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (edited, "checksum"),
        (truncated, "cut off"),
        (cut_to_nothing, "TOOLCBND"),
        (renamed, "another key"),
        (rewritten, "another key"),
    ],
)
@pytest.mark.parametrize("where", ["{}", "memory://{}"])
def test_a_file_that_was_tampered_with_is_refused_and_mended_by_a_put(
    tmp_path: Path, harm: Callable[[Path], None], reason: str, where: str
) -> None:
    folder = tmp_path / "s"
    local = open_store(folder)
    for number in (0, 1):
        local.put(keyed(number))
    harm(folder / f"{key()}.toolc")
    store = local
    if where.startswith("memory"):
        pytest.importorskip("fsspec", reason="stores under URLs need fsspec")
        store = open_store(where.format(tmp_path.name))
        for path in folder.glob("*.*"):
            store.files.write(path.name, path.read_bytes())
    with pytest.raises(BundleError, match=reason):
        store.get(key())
    with pytest.raises(BundleError, match=reason):
        load(store, key(), cache=tmp_path / "kept")
    assert store.put(keyed()) is Put.REPLACED and store.put(keyed()) is Put.KEPT
    assert store.get(key()).digest == keyed().digest
    assert load(store, key(), cache=tmp_path / "kept").digest == keyed().digest


def test_a_damaged_or_exchanged_vocab_is_refused_and_mended(tmp_path: Path) -> None:
    open_store(tmp_path).put(keyed())
    path = tmp_path / f"{keyed().vocab.digest}.vocab"
    from toolc.runtime.format import vocab as module

    for data in (path.read_bytes()[:-1] + b"\xff", _other_vocab().encode()):
        path.write_bytes(data)
        module._open.clear()
        with pytest.raises(BundleError, match=r"checksum|digest"):
            open_store(tmp_path).get(key())
        open_store(tmp_path).put(keyed())
        module._open.clear()
        assert open_store(tmp_path).get(key()).digest == keyed().digest
    path.unlink()
    module._open.clear()
    with pytest.raises(StoreError, match="does not hold the vocab"):
        open_store(tmp_path).get(key())


def _other_vocab() -> Vocab:
    from tests.runtime.handmade import tiny_vocab

    return tiny_vocab(64)


def test_urls_of_folders(tmp_path: Path) -> None:
    """The empty host and localhost are this machine; percent-escapes are bytes of the path."""
    for url, folder in (
        (f"file://{tmp_path}/a", "a"),
        (f"FILE://LocalHost{tmp_path}/a", "a"),
        (f"file:{tmp_path}/a", "a"),
        (f"file://{tmp_path}/a%20b", "a b"),
        (f"file://{tmp_path}/a%2520b%23%3F", "a%20b#?"),
        (f"file://{tmp_path}/%C3%A9", "é"),
        (f"file://{tmp_path}/%FF", os.fsdecode(b"\xff")),
    ):
        assert open_store(url).place == str(tmp_path / folder), url


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("file://stores/foo", "the host 'stores'"),
        ("file://relative", "the host 'relative'"),
        ("file://.", "the host '.'"),
        ("file://localhost", "the path ''"),
        ("file://", "the path ''"),
        ("file:relative", "the path 'relative'"),
        ("file:///a#b", "'#b'"),
        ("file:///a?b#c", "'?b#c'"),
        ("file:///a%00b", r"'/a\x00b'"),
        ("", "''"),
    ],
)
def test_what_names_no_folder(where: str, found: str) -> None:
    with pytest.raises(StoreError, match="names no") as refused:
        open_store(where)
    assert refused.value.place == (where or None) and refused.value.found == found
    assert refused.value.expected and refused.value.hint


@pytest.mark.parametrize("url", ["s3://", "s3:///", "https://", "HF://", "s3:/models/x", "Https:/host/x", "s3:/"])
def test_urls_of_nothing_make_no_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that happens to be called like a URL has ./ before its name; one letter is a drive of Windows."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="names no") as refused:
        open_store(url)
    assert refused.value.place == url and ("://" in url or f"./{url}" in str(refused.value.hint))
    for folder in (f"./{url}", "c:/x", "s3:x"):
        open_store(folder).put(keyed())
        assert open_store(folder).has(key()) and Path(folder, f"{key()}.toolc").is_file()


def test_a_folder_that_is_not_there_stays_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    assert not store.files.exists() and store.list() == [] and store.prune(max_bytes=1).bundles == ()
    assert not (tmp_path / "s").exists()
    store = open_store(tmp_path / ("s" * 300))  # no system has such names: as with a folder that may not be looked into
    for look in (store.files.exists, store.prune, lambda: store.has(key()), lambda: store.get(key())):
        with pytest.raises(StoreError, match="look for") as refused:
            look()
        assert str(refused.value.place).removesuffix(f"/{key()}.toolc") == store.place


def test_what_is_no_key_or_not_there(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for wrong in ("", "../../etc/passwd", "A" * 32, "0" * 31):
        with pytest.raises(StoreError, match="no key"):
            store.get(wrong)
    with pytest.raises(StoreError, match="does not hold"):
        store.get("0" * 32)


def test_signatures(tmp_path: Path) -> None:
    ours, our_key = new_signer(tmp_path, "ours")
    theirs, their_key = new_signer(tmp_path, "theirs")
    store = open_store(tmp_path / "s")
    store.put(keyed())
    with pytest.raises(BundleError, match="no allowed key") as caught:
        store.get(key(), [our_key])
    store.put(keyed(), theirs)
    with pytest.raises(BundleError, match="no allowed key") as caught:
        store.get(key(), [our_key])
    assert theirs.public in str(caught.value) and ours.public in str(caught.value)
    assert store.get(key(), [their_key]).digest == keyed().digest
    store.put(keyed(), ours)
    for allowed in ([our_key], [ours.public], [their_key, our_key]):
        assert store.get(key(), allowed).digest == keyed().digest
    (row,) = store.list()
    assert set(row.signers) == {ours.public, theirs.public}

    path = tmp_path / "s" / signature_name(key(), ours.public)
    good = path.read_bytes()
    store.put(keyed(1), ours)
    theirs_here = (tmp_path / "s" / signature_name(key(), theirs.public)).read_bytes()
    forged = good.replace(good.split(b"\n")[4], theirs_here.split(b"\n")[4])
    for data, reason in (
        (b"", "damaged"),
        (good[:-20], "damaged"),
        ((tmp_path / "s" / signature_name(key(1), ours.public)).read_bytes(), "another key"),
        (theirs_here, "another public key"),
        (forged, "not by the key"),
    ):
        path.write_bytes(data)
        with pytest.raises(BundleError, match=reason):
            store.get(key(), [our_key])
    path.write_bytes(good)
    keyed(0, name="another name").write(tmp_path / "s" / f"{key()}.toolc")  # sound, the right key, not what was signed
    with pytest.raises(BundleError, match="another digest"):
        store.get(key(), [our_key])
    store.put(keyed())  # without a signature what is there stays
    assert store.get(key()).meta["spec"]["name"] == "another name"
    store.put(keyed(), ours)
    assert store.get(key(), [our_key]).meta["spec"]["name"] == "brackets"


def test_a_signature_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """Too large, or a folder; and one key alone is a list of one."""
    theirs, their_key = new_signer(tmp_path, "theirs")
    ours, our_key = new_signer(tmp_path, "ours")
    store = open_store(tmp_path / "s")
    store.put(keyed(), ours)
    path = tmp_path / "s" / signature_name(key(), theirs.public)
    for damage in (lambda: path.write_bytes(b"x" * 5000), path.mkdir):
        damage()
        assert store.get(key(), [their_key, our_key]).digest == keyed().digest
        with pytest.raises(BundleError):
            store.get(key(), [their_key])
        path.rmdir() if path.is_dir() else path.unlink()
    for alone in (our_key, str(our_key), PublicKey.read(our_key)):
        assert load(tmp_path / "s", key(), allow=alone).digest == keyed().digest  # type: ignore[arg-type]


@pytest.mark.parametrize("allow", [[], (), ""])
def test_an_empty_list_of_allowed_keys_allows_nothing(tmp_path: Path, allow: list[PublicKey]) -> None:
    """As a configuration may give it; None alone asks for no signature."""
    ours, _ = new_signer(tmp_path, "ours")
    store = open_store(tmp_path / "s")
    store.put(keyed(), ours)
    for get in (lambda: store.get(key(), allow), lambda: load(tmp_path / "s", key(), allow=allow)):
        with pytest.raises(BundleError, match="list of allowed keys is empty") as refused:
            get()
        assert refused.value.place == "allow" and "None" in str(refused.value.hint)
    assert store.get(key(), None).digest == load(tmp_path / "s", key(), allow=None).digest == keyed().digest


@pytest.mark.parametrize("allow", [3, [None], [3], [b"x"]])
def test_what_is_no_list_of_keys(tmp_path: Path, allow: object) -> None:
    with pytest.raises(BundleError, match=r"found (int|NoneType|bytes), expected a PEM file, or 64 lower-case"):
        load(tmp_path, key(), allow=allow)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["A" * 64, "a" * 65])
def test_a_key_that_is_mistyped(tmp_path: Path, text: str) -> None:
    with pytest.raises(BundleError, match=r"No such file.*or 64 lower-case hexadecimal digits"):
        load(tmp_path, key(), allow=[text])


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("")
    for place in (tmp_path / "s", tmp_path / "s" / "below"):
        with pytest.raises(StoreError, match="this is a file") as refused:
            open_store(place).put(keyed())
        assert refused.value.place == str(place)


def test_what_is_no_ed25519_key(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    for path in (tmp_path / "junk", tmp_path / "absent"):
        with pytest.raises(BundleError, match="key"):
            load(tmp_path, key(), allow=[path])


def test_least_recently_used_bundles_are_evicted_and_vocabs_with_the_last(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(6):
        store.put(keyed(number))
        os.utime(tmp_path / f"{key(number)}.toolc", (number, number))
    store.get(key(0))  # used just now
    one = os.path.getsize(tmp_path / f"{key()}.toolc")
    vocab = os.path.getsize(tmp_path / f"{keyed().vocab.digest}.vocab")
    done = store.prune(max_bytes=vocab + 3 * one)
    assert set(done.bundles) == {key(1), key(2), key(3)} and done.vocabs == () and done.bytes == 3 * one
    assert [row.key for row in store.list()] == [key(0), key(5), key(4)]
    assert store.prune(older_than=3600).bundles == (key(4), key(5))
    done = store.prune(max_bytes=0)
    assert done.bundles == (key(0),) and done.vocabs == (keyed().vocab.digest,)
    assert names(tmp_path) == set()
    limited = open_store(tmp_path, max_bytes=vocab + 3 * one)
    for number in range(8):
        limited.put(keyed(number))
        assert limited.has(key(number))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= vocab + 3 * one
    (tmp_path / f".{key(1)}.toolc.0123456789ab.tmp").write_bytes(b"half")
    assert store.prune().half_written == 1


def test_what_is_no_file_of_a_store_is_never_removed(tmp_path: Path) -> None:
    """A project's own outputs, say, where its folder was named by mistake."""
    store = open_store(tmp_path)
    store.put(keyed())
    others = {"weather.toolc", "llama.vocab", "a.sig", ".draft.tmp", ".weather.toolc.0123456789ab.tmp", "notes.txt"}
    for name in others:
        (tmp_path / name).write_bytes(b"1234")
    assert store.prune(max_bytes=0, older_than=-1e9).bundles == (key(),)
    assert {path.name for path in tmp_path.iterdir()} - {".lock"} == others


def test_a_vocab_stays_while_a_bundle_cannot_be_read(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(keyed())
    (tmp_path / f"{key(1)}.toolc").write_bytes(b"of a future version")
    os.utime(tmp_path / f"{key(1)}.toolc", (9e9, 9e9))
    done = store.prune(max_bytes=len(keyed().vocab.encode()) + 40)
    assert done.bundles == (key(),) and done.vocabs == ()
    done = store.prune(max_bytes=0)
    assert done.bundles == (key(1),) and done.vocabs == (keyed().vocab.digest,)


def test_links_that_lead_nowhere_are_no_files(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(keyed())
    (tmp_path / f"{key(1)}.toolc").symlink_to(f"{key(1)}.toolc")
    (tmp_path / f"{key(2)}.toolc").symlink_to("nowhere")
    assert [row.key for row in store.list()] == [key()]
    assert store.prune(max_bytes=0).bundles == (key(),)


def test_a_read_only_mount(tmp_path: Path) -> None:
    """As a user without rights, where the tests run as root: a folder that nothing may be written to."""
    folder = tmp_path / "s"
    open_store(folder).put(keyed())
    (folder / ".lock").unlink()
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    code = (
        "import os, sys, toolc.runtime.store.fetch, toolc.runtime.format.kernels.pack\n"  # they may be root's to read
        "if os.getuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
        "import toolc.runtime as r\n"
        f"bundle = r.load({str(folder)!r}, {key()!r})\n"
        "try: r.open_store(sys.argv[1]).put(bundle)\n"
        "except r.StoreError as error: print(error.place)\n"
        "heavy = ('fsspec', 'cryptography', 'toolc.compiler', 'click')\n"
        "print(bundle.digest, *(name for name in heavy if name in sys.modules))"
    )
    for parent in folder.parents:
        if parent.stat().st_mode & 0o5 != 0o5 and os.getuid() == 0:
            if parent.is_relative_to(tmp_path.parent.parent.parent):
                parent.chmod(0o755)
            else:
                pytest.skip("a user without rights cannot get to the temporary folder")
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    folder.chmod(0o755)
    assert done.stdout.split() == [str(folder / ".lock"), keyed().digest], done.stderr


def test_a_machine_that_can_keep_nothing_loads_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec", reason="stores under URLs need fsspec")
    store = open_store(f"memory://{tmp_path.name}")
    store.put(keyed())
    (tmp_path / "file").write_text("")
    bundle = load(store, key(), cache=tmp_path / "file" / "kept")
    assert bundle.digest == keyed().digest

    def full(target: Path, parts: object) -> None:
        raise BundleError("cannot write the file", place=str(target), found="No space left on device")

    monkeypatch.setattr("toolc.runtime.store.folder.replace_file", full)
    assert load(store, key(), cache=tmp_path / "kept").digest == keyed().digest


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_is_evicted_while_it_is_opened(comes_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock others may win every time; with it they wait."""
    store, open_ = open_store(tmp_path), Bundle.open
    store.put(keyed())
    file = tmp_path / f"{key()}.toolc"
    evictions = 0

    def evicted(path: Path, *rest: object) -> Bundle:
        nonlocal evictions
        if store.files._threads.locked():  # type: ignore[attr-defined]
            return open_(path, *rest)  # type: ignore[arg-type]
        evictions += 1
        data = file.read_bytes()
        file.unlink()
        try:
            return open_(path, *rest)  # type: ignore[arg-type]
        finally:
            if comes_back:
                file.write_bytes(data)

    monkeypatch.setattr(Bundle, "open", evicted)
    if comes_back:
        assert store.get(key()).digest == keyed().digest
    else:
        with pytest.raises(StoreError, match="does not hold this bundle"):
            store.get(key())
    assert evictions == 1


def test_what_is_evicted_before_its_signature_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signer, public = new_signer(tmp_path, "ours")
    store, other, open_ = open_store(tmp_path / "s"), open_store(tmp_path / "s"), Bundle.open
    store.put(keyed(), signer)

    def evicted(path: Path, *rest: object) -> Bundle:
        bundle = open_(path, *rest)  # type: ignore[arg-type]
        other.prune(max_bytes=0)
        return bundle

    monkeypatch.setattr(Bundle, "open", evicted)
    with pytest.raises(StoreError, match="does not hold this bundle"):
        store.get(key(), [public])


def test_a_damaged_bundle_where_nobody_can_lock(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(keyed())
    file = tmp_path / f"{key()}.toolc"
    file.write_bytes(file.read_bytes()[:-1])
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").mkdir()  # cannot be opened, as on a mount that may only be read
    with pytest.raises(BundleError) as found:
        store.get(key())
    assert found.value.place == f"{file}#size"


def test_writers_readers_and_evictors_in_threads(tmp_path: Path) -> None:
    wrong: list[object] = []
    vocab = len(keyed().vocab.encode())
    limit = vocab + 4 * len(keyed().encode())

    def work(first: int) -> None:
        store = open_store(tmp_path, max_bytes=limit)
        for turn in range(12):
            number = (first + turn) % 7
            store.put(keyed(number))
            try:
                if store.get(key(number)).digest != keyed(number).digest:
                    wrong.append(number)
            except StoreError:
                pass  # evicted
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    for row in open_store(tmp_path).list():
        open_store(tmp_path).get(row.key)
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("wrong", ["memory://typo/weather", "memory://right-2"])
def test_a_wrong_address_is_not_hidden_by_what_is_kept(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle that was kept from one store was found under the address of any other."""
    pytest.importorskip("fsspec")
    where = "memory://right"
    open_store(where).put(keyed())
    for _ in range(2):
        assert load(where, key(), cache=tmp_path / "cache").digest == keyed().digest
    with pytest.raises(StoreError, match="does not hold"):
        load(wrong, key(), cache=tmp_path / "cache")
    open_store(where).prune(max_bytes=0)
    assert load(f"{where}/", key(), cache=tmp_path / "cache").digest == keyed().digest  # kept, from there
