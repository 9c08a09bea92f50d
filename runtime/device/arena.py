"""The tables of several bundles of one vocabulary, relocated into one set of tensors on one device.

Leaves out   the state of sequences: see decoder.py. The relocation: see relocate.py.
Invariants   state 0 is dead and state 1 is finished for all bundles; a bundle's other states, cells, transitions,
             pushes, returns and chains are one stretch of their tables, which never moves while the bundle is here.
             Stack symbols stay local, so a comb of chains is indexed as in the file; `symbol_base` takes them to
             `return_offset`. Rows are stored once under their content, whatever bundles they belong to.
Arrays       as in docs/format.md, with all numbers relocated; per bundle int32 [bundles]: class_base,
             special_base, symbol_base, soft_depth, capacity, finished_row.
             dense int32 [rows, words]: row 0 is empty, row 1 full. state_loop int32 [states]: number of the set of
             tokens all of whose bytes take the state back to itself with the same counter; loop_bits int32 [sets,
             words]: set 0 is empty. register_test int32 [tests, 1 + G]: what `test_wants` says, then `test_mask`.
             check_length int32 [check lists, 1]. The tables about registers have two dimensions, the second of them
             empty where no bundle has registers; stretches of bundles without are 0.
Growth       Tables have room for more bundles than they hold (`room`). A bundle that fits is copied in, and no address
             changes: steps captured before still hold, and see it. One that does not fit needs `grow`, which copies
             the tables into larger ones; numbers of states and bundles stay.
Eviction     With a `limit`, tables never take more bytes. Where a bundle would need more, holes are closed if that is
             enough (states then get other numbers, and the decoders are told), or else bundles that no row of any
             decoder of the arena is in make place, the one used longest ago first.
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from ..errors import DecodeError
from ..format.container import refuse
from ..format.rows import expanded
from .free_list import Extents
from .relocate import (
    EMPTY_ROW,
    GROUPS,
    REGISTER_TABLES,
    TABLES,
    Limits,
    key_of,
    lengths,
    relocated,
    reserved,
    row_keys,
    special_map,
)
from .self_loops import loops_of

if TYPE_CHECKING:
    from ..format.bundle import Bundle

GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}


class Holder(Protocol):
    """What has rows in an arena's bundles."""

    def bundles_in_use(self) -> set[int]:
        """The numbers of the bundles."""

    def shift_states_(self, shift: torch.Tensor) -> None:
        """Add to every state of a row in bundle n that is past the finished one: shift[n], int32 [bundles]."""


class Arena:
    """Tensors of all bundles that a decoder may use.

    Attributes:
        bundles: by number; None for a number that is free.
        table: name to tensor; see the module's opening.
        addresses: int64 on the device: where each table begins, in the order of `relocate.TABLES`.
        limits: what loops and shapes depend on.
        holders: the decoders of the arena, while they live.

    Args:
        device: of the tensors.
        room: how many times the size of what it first holds is allocated.
        limit: the most bytes that the tensors may take; None for no limit.
        closes_holes: whether rows and states may move to make room under a limit.
    """

    def __init__(
        self, device: torch.device, room: float = 1.0, limit: int | None = None, closes_holes: bool = True
    ) -> None:
        self.closes_holes = closes_holes
        self.device = device
        self.room = max(room, 1.0)
        self.limit = limit
        self.bundles: list[Bundle | None] = []
        self.table: dict[str, torch.Tensor] = {}
        self.addresses = torch.zeros(len(TABLES), dtype=torch.int64, device=device)
        self.limits = Limits(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0)
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._extents = {group: Extents() for group in GROUPS}
        self._base: dict[int, dict[str, int]] = {}
        self._row_of_key: dict[bytes, int] = {}
        self._row_users: Counter[bytes] = Counter()
        self._special_of_key: dict[bytes, int] = {}
        self._special_users: Counter[bytes] = Counter()
        self._clock = itertools.count()
        self._used_at: dict[int, int] = {}

    # ------------------------------------------------------------ what is here

    @property
    def words(self) -> int:
        return self._some().vocab.words

    @property
    def size(self) -> int:
        """V."""
        return self.limits.size

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(table.nbytes for table in self.table.values())

    def local_state(self, number: int, state: int) -> int:
        return state if state < 2 else state - self._base[number]["state"] + 2

    def global_state(self, number: int, state: int) -> int:
        return state if state < 2 else state + self._base[number]["state"] - 2

    def row_numbers(self, number: int) -> np.ndarray:
        """int32 [rows + 1]: where each row of a bundle is, that of the end-of-turn ids last."""
        keys = row_keys(self.bundle(number))
        return np.fromiter((self._row_of_key[key] for key in keys), np.int32, len(keys))

    def bundle(self, number: int) -> Bundle:
        """The bundle of a number; a DecodeError if there is none. It counts as used now."""
        found = self.bundles[number] if 0 <= number < len(self.bundles) else None
        if found is None:
            here = [str(n) for n, b in enumerate(self.bundles) if b is not None]
            raise DecodeError(
                "no such bundle",
                found=str(number),
                expected=f"-1 to {len(self.bundles) - 1}" if None not in self.bundles else "-1, " + ", ".join(here),
            )
        self._used_at[number] = next(self._clock)
        return found

    def number(self, bundle: Bundle) -> int | None:
        """The number of a bundle that is here, under whatever name it was opened."""
        for n, held in enumerate(self.bundles):
            if held is bundle or held is not None and held.digest == bundle.digest:
                return n
        return None

    def _some(self) -> Bundle:
        return next(b for b in self.bundles if b is not None)

    # ------------------------------------------------------------ adding

    def add(self, bundle: Bundle, grow: bool = True) -> int:
        """Take in a bundle; returns its number. See `extend`."""
        return self.extend([bundle], grow)[0]

    def extend(self, bundles: Sequence[Bundle], grow: bool = True) -> list[int]:
        """Take in bundles; returns their numbers.

        Args:
            bundles: of the same vocabulary as the others.
            grow: make larger tensors if they do not fit, or else refuse them.

        Raises:
            DecodeError: they do not fit, and nothing has changed but that bundles in no use may have gone.
        """
        others = [b for b in self.bundles if b is not None] or list(bundles[:1])
        for bundle in bundles:
            if bundle.vocab.digest != others[0].vocab.digest:
                raise refuse(
                    bundle.name,
                    "meta/vocab_digest",
                    bundle.vocab.digest,
                    f"{others[0].vocab.digest}, as {others[0].name}",
                    "one decoder serves one tokenizer",
                )
        fresh: list[Bundle] = []
        for bundle in bundles:
            if self.number(bundle) is None and all(b.digest != bundle.digest for b in fresh):
                fresh.append(bundle)
        for bundle in bundles:  # what is asked for now is not what goes
            if (n := self.number(bundle)) is not None:
                self._used_at[n] = next(self._clock)
        if fresh:
            self._make_room(fresh, grow, {n for b in bundles if (n := self.number(b)) is not None})
            for bundle in fresh:
                self._copy_in(bundle)
        return [n for bundle in bundles if (n := self.number(bundle)) is not None]

    def _needs(self, fresh: Sequence[Bundle]) -> dict[str, list[int]]:
        """Stretches that bundles need in each group; rows and special maps that are not here."""
        needs: dict[str, list[int]] = {group: [] for group in GROUPS}
        for bundle in fresh:
            for group, length in lengths(bundle).items():
                needs[group].append(length)
        keys = {key for bundle in fresh for key in row_keys(bundle)} - self._row_of_key.keys()
        needs["row"] = [1] * len(keys - ({self._empty_key(fresh[0])} if not self.table else set()))
        maps = {special_map(bundle).tobytes() for bundle in fresh} - self._special_of_key.keys()
        needs["special"] = [fresh[0].vocab.size] * len(maps)
        return needs

    def _empty_key(self, bundle: Bundle) -> bytes:
        return key_of(np.zeros(bundle.vocab.words, np.uint32))

    def _make_room(self, fresh: Sequence[Bundle], grow: bool, kept: set[int]) -> None:
        """See that the bundles fit, by growth, and by eviction where there is a limit."""
        limits = self.limits
        for bundle in fresh:
            limits = limits.joined(Limits.of(bundle))
        while True:
            needs = self._needs(fresh)
            short = [group for group, extents in self._extents.items() if not extents.fits(needs[group])]
            wider = [name for name in Limits._fields if getattr(limits, name) > getattr(self.limits, name)]
            if not short and not wider:
                return
            if grow or not self.table:
                for room in dict.fromkeys((self.room, 1.0)):
                    sizes = self._sizes(needs, short, room, fresh[0].vocab.words)
                    if self.limit is None or self._bytes(fresh[0], limits, sizes) <= self.limit:
                        self._grow(limits, sizes, fresh[0])
                        return
                sizes = self._tight(fresh)
                if self.closes_holes and self.limit is not None and self._bytes(fresh[0], limits, sizes) <= self.limit:
                    self._compact(limits, sizes, fresh[0])
                    return
            if self.limit is None or not self._evict_one(kept):
                raise self._full(fresh, short, wider, needs, limits, grow)

    def _sizes(self, needs: dict[str, list[int]], short: Sequence[str], room: float, words: int) -> dict[str, int]:
        """Entries of each group so that the needs fit."""
        sizes = {group: extents.size for group, extents in self._extents.items()}
        first = reserved(self.limits, words)
        for group in GROUPS if not self.table else short:
            extents, need = self._extents[group], sum(needs[group])
            start = 0 if self.table else first[GROUPS[group][0]].shape[0]
            sizes[group] = max(int((extents.used + start + need) * room), extents.end + start + need)
        return sizes

    def _tight(self, fresh: Sequence[Bundle]) -> dict[str, int]:
        """Entries of each group if all bundles stood side by side; their numbers stay."""
        every = [b for b in self.bundles if b is not None] + list(fresh)
        sizes = {group: reserved(self.limits, 1)[names[0]].shape[0] for group, names in GROUPS.items()}
        for bundle in every:
            for group, length in lengths(bundle).items():
                sizes[group] += length
        empty = self._empty_key(every[0])
        sizes["row"] += len({key for bundle in every for key in row_keys(bundle)} - {empty})
        sizes["special"] += every[0].vocab.size * len({special_map(bundle).tobytes() for bundle in every})
        probe = self._extents["bundle"].copy()
        missing = len(fresh) - (probe.size - probe.used)
        sizes["bundle"] = probe.size + max(missing, 0)
        return sizes

    def _bytes(self, bundle: Bundle, limits: Limits, sizes: dict[str, int]) -> int:
        """Bytes of tables of these sizes, and of the vocabulary's."""
        v, first = bundle.vocab, reserved(limits, bundle.vocab.words)
        entries = sum(
            sizes[GROUP_OF[name]] * int(np.prod(part.shape[1:], dtype=np.int64)) for name, part in first.items()
        )
        return 4 * (entries + v.token_bytes.size + 1 + v.token_offset.size)

    def _full(
        self,
        fresh: Sequence[Bundle],
        short: Sequence[str],
        wider: Sequence[str],
        needs: dict[str, list[int]],
        limits: Limits,
        grow: bool,
    ) -> DecodeError:
        names = ", ".join(bundle.name for bundle in fresh)
        if self.limit is None or not grow:
            missing = [f"{name} {getattr(limits, name)}, more than {getattr(self.limits, name)}" for name in wider]
            missing += [
                f"{sum(needs[g])} entries of {g}, more than {self._extents[g].size - self._extents[g].used}"
                for g in short
            ]
            return DecodeError(
                "the bundle does not fit into the arena",
                place=names,
                found="; ".join(missing),
                hint=(
                    "make the decoder with this bundle among its first" if wider else "make the decoder with more room"
                )
                + ", or allow it to grow and capture its graphs again",
            )
        least = self._bytes(fresh[0], limits, self._tight(fresh))
        here = [bundle.name for bundle in self.bundles if bundle is not None]
        return DecodeError(
            "the bundle does not fit into the memory limit, and every bundle there is in use",
            place=names,
            found=f"{least:,} bytes, with {', '.join(here) if here else 'no other bundle'}",
            expected=f"at most {self.limit:,}",
            hint="raise the limit, or let rows finish first; `toolc inspect` tells what a bundle takes",
        )

    def _grow(self, limits: Limits, sizes: dict[str, int], bundle: Bundle) -> None:
        """Tables of these sizes and widths, with what is held where it was."""
        first = reserved(limits, bundle.vocab.words)
        old, held = self.table, {group: extents.end for group, extents in self._extents.items()}
        fresh = not old
        for name, part in first.items():
            group = GROUP_OF[name]
            before = torch.from_numpy(part).to(self.device) if fresh else old.pop(name)
            count = part.shape[0] if fresh else held[group]
            shape = (sizes[group], *part.shape[1:])
            if not fresh and before.shape == shape:
                self.table[name] = before
                continue
            table = torch.zeros(shape, dtype=torch.int32, device=self.device)
            if name in REGISTER_TABLES and not fresh:
                table[: part.shape[0]] = torch.from_numpy(part)
                table[:count, : before.shape[1]] = before[:count]
                if name == "cell_check" and before.shape[1]:
                    table[:count, before.shape[1] :] = before[:count, -1:]
            elif part.ndim == 2 and name in ("cell_row", "cell_exit", "close_token", "close_after"):
                # A bundle of one mode is the same in both.
                last = before[:count, -1:].expand(-1, shape[1] - before.shape[1])
                table[:count] = torch.cat([before[:count], last], dim=1)
            elif part.ndim == 3:
                table[:count, : before.shape[1]] = before[:count]
            else:
                table[:count] = before[:count]
            self.table[name] = table
        for group, extents in self._extents.items():
            extents.grow(sizes[group])
            if fresh:
                extents.take(first[GROUPS[group][0]].shape[0])
        if fresh:
            vocab = bundle.vocab
            # One byte more, so that a token without text at the end has a place to point at.
            text = np.concatenate([vocab.token_bytes, np.zeros(1, np.uint8)]).astype(np.int32)
            self.table["token_bytes"] = torch.from_numpy(text).to(self.device)
            self.table["token_offset"] = torch.from_numpy(vocab.token_offset.copy()).to(self.device)
            key = self._empty_key(bundle)
            self._row_of_key[key], self._row_users[key] = EMPTY_ROW, 1
        else:
            self.table.update(old)
        self.addresses = torch.tensor([self.table[name].data_ptr() for name in TABLES], device=self.device)
        self.limits = limits

    def _compact(self, limits: Limits, sizes: dict[str, int], some: Bundle) -> None:
        """All tables anew, without holes. Bundles keep their numbers; rows in them are told how far states moved."""
        old, used_at = {number: base["state"] for number, base in self._base.items()}, dict(self._used_at)
        self._extents = {group: self._extents[group] if group == "bundle" else Extents() for group in GROUPS}
        for users in (self._row_of_key, self._row_users, self._special_of_key, self._special_users, self.table):
            users.clear()
        here = {number: bundle for number, bundle in enumerate(self.bundles) if bundle is not None}
        self._grow(limits, sizes, some)
        for number, bundle in here.items():
            self._copy_in(bundle, number)
        self._used_at = used_at
        shift = torch.zeros(max(1, len(self.bundles)), dtype=torch.int32)
        for number, start in old.items():
            shift[number] = self._base[number]["state"] - start
        shift = shift.to(self.device)
        for holder in self.holders:
            holder.shift_states_(shift)

    def _take(self, group: str, length: int) -> int:
        start = self._extents[group].take(length)
        assert start is not None, group  # _make_room has seen to it
        return start

    def _copy_in(self, bundle: Bundle, number: int | None = None) -> None:
        """A bundle for which there is room, under a new number or the one that it has."""
        base = {
            group: self._take(group, length) if group != "bundle" or number is None else number
            for group, length in lengths(bundle).items()
        }
        symbols = special_map(bundle)
        key = symbols.tobytes()
        if key not in self._special_of_key:
            self._special_of_key[key] = self._take("special", symbols.size)
            self._write("special_symbol", self._special_of_key[key], symbols)
        self._special_users[key] += 1
        base["special"] = self._special_of_key[key]
        number = base["bundle"]
        self.bundles.extend([None] * (number + 1 - len(self.bundles)))
        self.bundles[number], self._base[number] = bundle, base
        self._used_at[number] = next(self._clock)
        self._copy_rows(bundle)
        for name, array in relocated(bundle, loops_of(bundle), base, self.row_numbers(number), self.limits).items():
            self._write(name, base[GROUP_OF[name]], array)

    def _copy_rows(self, bundle: Bundle) -> None:
        keys = row_keys(bundle)
        fresh: dict[bytes, int] = {}
        for n, key in enumerate(keys):
            if key not in self._row_of_key:
                self._row_of_key[key] = self._take("row", 1)
                fresh[key] = n
        self._row_users.update(set(keys))
        some = np.fromiter(fresh.values(), np.int64, len(fresh))
        place = torch.tensor([self._row_of_key[key] for key in fresh], dtype=torch.int64, device=self.device)
        done = 0
        for part in expanded(bundle, some):
            self.table["dense"][place[done : done + len(part)]] = torch.from_numpy(part.view(np.int32)).to(self.device)
            done += len(part)

    def _write(self, name: str, start: int, array: np.ndarray) -> None:
        self.table[name][start : start + array.shape[0]] = torch.from_numpy(np.array(array)).to(self.device)

    # ------------------------------------------------------------ eviction

    def in_use(self) -> set[int]:
        """Numbers of bundles that some row is in; reads from the device."""
        return {number for holder in self.holders for number in holder.bundles_in_use()}

    def _evict_one(self, kept: set[int]) -> bool:
        """Let go of the bundle that was used longest ago, of those in no use; False if there is none."""
        held = self.in_use() | kept
        idle = [n for n, b in enumerate(self.bundles) if b is not None and n not in held]
        if not idle:
            return False
        self.evict(min(idle, key=self._used_at.__getitem__))
        return True

    def evict(self, number: int) -> None:
        """Let go of a bundle that no row is in; its number and its room are free."""
        bundle = self.bundle(number)
        if number in self.in_use():
            raise DecodeError("the bundle is in use", found=bundle.name, hint="reset its rows to another bundle first")
        base = self._base.pop(number)
        for group, length in lengths(bundle).items():
            self._extents[group].give(base[group], length)
        key = special_map(bundle).tobytes()
        self._special_users[key] -= 1
        if not self._special_users[key]:
            del self._special_users[key]
            self._extents["special"].give(self._special_of_key.pop(key), bundle.vocab.size)
        for row in set(row_keys(bundle)):
            self._row_users[row] -= 1
            if not self._row_users[row]:
                del self._row_users[row]
                self._extents["row"].give(self._row_of_key.pop(row), 1)
        self.bundles[number] = None
        del self._used_at[number]
