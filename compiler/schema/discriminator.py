"""Narrow the branches of a union to the tags that an OpenAPI ``discriminator`` gives them.

A discriminator changes no validation (OpenAPI 3.1.1, 4.8.25). Where branches leave their tag open, as any string, the
tag of a text decides which branch its reader takes. So a branch is narrowed to its own tags, if all branches allow it.

Leaves out   reading tags (tags.py); validation: ``oneOf`` and ``anyOf`` mean the same with and without a discriminator.
Invariants   a narrowed branch has some of its values and never none; complements are those of the whole branch.
Agrees       a union is narrowed if all its branches agree with the discriminator: the values that a branch lists for
             the property are among its tags; a branch that lists none takes one of its tags at least, one that a union
             in it gives, too, where there is one; branches without a name (schemas in place) have no tags, and agree,
             as do those that are no objects. Of more than MAX_DEPTH unions inside of each other none is narrowed.
Applied      to the shape of one alternative, after all else that holds: where the property has listed values by then,
             may not be there, or takes none of the tags, the shape stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import UnsupportedError
from .atoms import ANY, NEVER, Atom, Conj, Literal, Members, Required, Tagged, literal
from .nodes import Constant, Node
from .shapes import Objects, Shape
from .tags import TAGS, Tags

if TYPE_CHECKING:
    from .branches import Brancher

MAX_TRIED = 32
"""Alternatives of one branch of a union that are looked at."""

MAX_DEPTH = 8
"""Unions inside of each other that are looked at."""


class Discriminators:
    """Narrows by discriminators.

    Args:
        brancher: the alternatives of a schema.
        merge: the shape of the atoms of an alternative, or None.
        listed: the values of a conj, where they are listed.
        holds: whether a value satisfies a conj.
        one_of: makes the schema of some constants.
    """

    def __init__(
        self,
        brancher: Brancher,
        merge: Callable[[Sequence[Atom]], Shape | None],
        listed: Callable[[tuple[Literal, ...]], tuple[Constant, ...] | None],
        holds: Callable[[Conj, object], bool],
        one_of: Callable[[tuple[Constant, ...]], Node],
    ) -> None:
        self._brancher = brancher
        self._merge = merge
        self._listed = listed
        self._holds = holds
        self._one_of = one_of
        self._open: dict[Node, None] = {}  # unions that are being looked at, one inside of the other
        self._deep: set[Node] = set()  # too far inside of each other

    def agrees(self, node: Node) -> bool | None:
        """Whether all branches of a union agree with its discriminator; None while that is being asked of it."""
        if node in self._open:
            return None
        if len(self._open) == MAX_DEPTH:
            self._deep.update((*self._open, node))
        if node in self._deep:
            return False
        self._open[node] = None
        try:
            tags: Tags = node.keywords[TAGS]
            agrees = all(
                self._branch_agrees(branch, tags.name, some)
                for keyword in ("oneOf", "anyOf")
                for branch, some in zip(node.keywords.get(keyword, ()), getattr(tags, keyword), strict=True)
                if some and branch.keywords
            )
            return agrees and node not in self._deep
        finally:
            del self._open[node]

    def _branch_agrees(self, branch: Node, name: str, tags: tuple[Constant, ...]) -> bool:
        one = literal(branch)
        if not one or not self._brancher.possible(one[0], "object"):
            return True
        try:
            found = self._brancher.try_branches(one, "object", MAX_TRIED)
            return found is not None and all(self._agrees(atoms, name, tags) for atoms in found)
        except UnsupportedError:
            return False  # refused where it matters, with its place

    def _agrees(self, atoms: Sequence[Atom], name: str, tags: tuple[Constant, ...]) -> bool:
        value = self._value(atoms, name)
        values = self._listed(value) if value else None
        if values is None:
            return bool(self._kept(value, _common([tags, *_said(atoms, name)])))
        return {one.key for one in values} <= {one.key for one in tags}

    def narrowed(self, atoms: Sequence[Atom], shape: Objects) -> Objects:
        """The shape of some atoms, narrowed by the discriminators among them."""
        for name in dict.fromkeys(atom.name for atom in atoms if isinstance(atom, Tagged)):
            if shape.needs and name not in shape.required:
                continue  # one more member could be one too many
            tags = _common(_said(atoms, name))
            try:
                kept = self._kept(self._value(atoms, name), tags)
            except UnsupportedError:
                continue
            if kept:
                only = Members(((name, literal(self._one_of(kept))),), declares=False)
                more = [*atoms, only, Required((name,))]
                found = self._merge(more)
                if isinstance(found, Objects):
                    atoms, shape = more, found
        return shape

    def _value(self, atoms: Sequence[Atom], name: str) -> Conj:
        """What a member satisfies in the objects of some atoms."""
        shape = self._merge([*atoms, Members(((name, ANY),), declares=False)])
        return dict(shape.named).get(name, NEVER) if isinstance(shape, Objects) else NEVER

    def _kept(self, value: Conj, tags: tuple[Constant, ...]) -> tuple[Constant, ...]:
        """The tags to which a value is narrowed: none where its values are listed."""
        if value is None or (value and self._listed(value) is not None):
            return ()
        return tuple([tag for tag in tags if self._holds(value, tag.value)])


def _said(atoms: Sequence[Atom], name: str) -> list[tuple[Constant, ...]]:
    """The tags that discriminators give to one property."""
    return [atom.tags for atom in atoms if isinstance(atom, Tagged) and atom.name == name]


def _common(some: list[tuple[Constant, ...]]) -> tuple[Constant, ...]:
    first, *others = some
    return tuple([one for one in first if all(one in other for other in others)])
