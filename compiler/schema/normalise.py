"""From conjunctions of schemas to unions of shapes, per JSON type; and which of them are empty.

Leaves out   text (writer.py), what keywords mean (atoms.py), merging atoms (shapes.py).
Invariants   ``shapes`` is memoised by conj, so recursion ends; nothing here recurses along a chain of references;
             what is not known to be empty is taken to have values.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from ..budget import Budget
from ..errors import SchemaError, ToolcError, UnsupportedError
from . import member_automata as machine
from .absorb import absorbed
from .any_order import any_order_machine
from .atoms import ANY, All, Atom, Conj, Formula, Literal, Multiple, OneOf, Some, both, conj
from .branches import Brancher, constant_keys
from .discriminator import Discriminators
from .disjoint import not_told_apart
from .evaluate import holds_atom, search
from .formulas import formula
from .keywords import MAX_KEYS, MAX_REGISTER_BITS
from .member_automata import Machine, array_is_plain, item_choices, member_choices, object_is_plain
from .merge import merge
from .multiples import few_multiples, multiples_machine
from .nodes import REFERENCES, Constant, Node, Reader
from .references import Target
from .required_unions import joined
from .shapes import CONSTANTS, FULL, Arrays, Constants, Numbers, Objects, Shape, Strings
from .string_tails import some_string
from .tags import TAGS
from .unevaluated import KEYWORD, Unevaluated
from .values import KINDS, freeze, kind_of
from .witnesses import Witnesses

MAX_TRIED = 32
"""Alternatives that are looked at to tell whether a schema has no value at all."""

MAX_VALUES = 64
"""Values of the items of an array with uniqueItems."""

MAX_HOPS = 8
"""References that are followed to tell whether a schema lists its values."""

SAMPLES = tuple(
    Constant(freeze(value), value)
    for value in (None, False, True, 0, 1, -1, 982451653, Decimal("0.5"), "", "\N{SNOWMAN}")
)
"""Values that show of many schemas that they have one."""

_IN_PLACE = frozenset((*REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies",
                       "dependentSchemas"))  # fmt: skip

_OF_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf"))

Shapes = dict[str, tuple[Shape, ...]]

MOST_PLAIN_SHAPES = 4096
"""Schemas without schemas in them whose shapes are kept for other compiles."""

_plain_shapes: dict[Hashable, Shapes] = {}
"""Node.plain → shapes."""


class Choice(NamedTuple):
    """An alternative of a conj: its shape, and the schemas that hold in it."""

    one: tuple[Literal, ...]
    kind: str
    shape: Shape | None
    nodes: tuple[Node, ...]


class Normaliser:
    """Shapes of conjs, memoised.

    Attributes:
        explored: conjs of which it is settled whether they have a value.
        choices: the alternatives of those that have unions.
    """

    def __init__(
        self, reader: Reader, budget: Budget | None = None, relax: Collection[str] = (), digits: int = 20
    ) -> None:
        self.reader = reader
        self.relax = frozenset(relax)
        self.digits = digits
        self._unevaluated = Unevaluated(self._settle, self._in_place, reader.any_of)
        self.budget = budget or Budget(None, None, None, None)
        self._shapes: dict[tuple[Literal, ...], Shapes] = {}
        self._parts: dict[tuple[Node, str], tuple[Formula, ...]] = {}
        self._sound: set[Node] = set()
        self._settled: set[Node] = set()
        self._final: dict[Node, Node] = {}  # of what is nothing but a reference: see `final`
        self._alive: dict[tuple[Literal, ...], bool] = {}
        self._brancher = Brancher(self.parts, self._one_of, self.empty, self.budget, reader.one_of)
        self._discriminators = Discriminators(
            self._brancher,
            lambda atoms: self._merged("object", atoms, ""),
            self.listed,
            self.holds_all,
            lambda constants: reader.one_of(constants, "#"),
        )
        self.explored: dict[tuple[Literal, ...], None] = {}
        self.choices: list[Choice] = []
        self._tries = 3  # schemas inside of each other of which it is tried to tell whether they have no value
        self._empty: dict[tuple[tuple[Literal, ...], str, int], bool] = {}  # kind "": of all kinds
        self._keys: dict[Node, frozenset[Hashable] | None] = {}
        self._values: dict[tuple[Literal, ...], tuple[tuple[Constant, ...], bool]] = {}
        self._witnesses = Witnesses(self.parts)
        self._unions: dict[tuple[OneOf, str, int], Formula] = {}  # all that is in place is settled by then

    def close(self) -> None:
        """Let go of what refers back to this: no collector has to find all that many schemas have left, then."""
        del self._unevaluated, self._brancher, self._discriminators, self._witnesses

    # -- one conj

    def shapes(self, one: tuple[Literal, ...]) -> Shapes:
        """The union of shapes of every kind that a conj allows."""
        found = self._shapes.get(one)
        if found is None and not one:
            constants: Shapes = {kind: (Constants(CONSTANTS[kind]),) for kind in CONSTANTS}
            found = self._shapes[one] = {**constants, **{kind: (shape,) for kind, shape in FULL.items()}}
        elif found is None:
            plain = one[0].node.plain if len(one) == 1 and one[0].positive else None
            found = None if plain is None else _plain_shapes.get(plain)
            if found is None:
                found = self._all_shapes(one)
                if plain is not None:
                    if len(_plain_shapes) >= MOST_PLAIN_SHAPES:
                        _plain_shapes.clear()
                    _plain_shapes[plain] = found
            self._shapes[one] = found
        return found

    def _all_shapes(self, one: tuple[Literal, ...]) -> Shapes:
        for literal in one:
            self._check_cycles(literal.node)
        found: Shapes = {}
        listed = self.listed(one) if len(one) > 1 else None
        if listed is not None:
            for kind in KINDS:
                values = tuple(constant for constant in listed if kind_of(constant.value) == kind)
                if values:
                    found[kind] = (Constants(values),)
            return found
        for kind in KINDS:
            if len(one) == 1 and not self._brancher.possible(one[0], kind):
                continue  # as all kinds but one of most schemas
            options = self._kind_shapes(one, kind)
            if options:
                found[kind] = options
        return found

    def listed(self, one: tuple[Literal, ...]) -> tuple[Constant, ...] | None:
        """The values of a conj of which some part lists its values; None where none does, or one cannot be judged."""
        values, complete = self._some_values(one)
        return values if complete else None

    def _some_values(self, one: tuple[Literal, ...]) -> tuple[tuple[Constant, ...], bool]:
        """Values of a conj, and whether these are all: those that a part lists, or else some plain ones.

        What one literal more leaves is looked for among what the others leave: a chain of conditions on one member, as
        if and then make it, asks for that again and again.
        """
        first = len(one)
        while first and one[:first] not in self._values:
            first -= 1
        values, complete = self._values[one[:first]] if first else (SAMPLES, False)
        for count in range(first + 1, len(one) + 1):
            literal = one[count - 1]
            judges: tuple[Literal, ...] = (literal,)
            if not complete and literal.positive:
                constants = self._constants(literal.node)
                if constants is not None:
                    values, complete, judges = constants, True, one[:count]
            for judge in judges:
                if values:
                    try:
                        values = self._judged(judge, values)
                    except UnsupportedError:
                        values, complete = (), False  # refused where it matters, with its place
            self._values[one[:count]] = values, complete
        return values, complete

    def _judged(self, literal: Literal, values: tuple[Constant, ...]) -> tuple[Constant, ...]:
        """Those values that satisfy a literal."""
        if literal.node not in self._keys:
            self._keys[literal.node] = constant_keys(literal.node)
        keys = self._keys[literal.node]
        if keys is not None:
            return tuple([value for value in values if (value.key in keys) == literal.positive])
        self.budget.check("")
        return tuple([value for value in values if holds_atom(literal, value.value, self.parts)])

    def _constants(self, node: Node) -> tuple[Constant, ...] | None:
        """Values among which all those of a node are, where it lists them, or what it refers to does."""
        for _ in range(MAX_HOPS):
            for keyword in ("const", "enum"):
                if keyword in node.keywords:
                    return node.keywords[keyword]
            self._check_cycles(node)
            target = node.keywords.get("$ref")
            if not isinstance(target, Node):
                break
            node = target
        return None

    def _kind_shapes(self, one: tuple[Literal, ...], kind: str) -> tuple[Shape, ...]:
        options: dict[Shape, None] = {}
        branches = self._brancher.branches(one, kind)
        held = self._brancher.held
        for branch in branches:
            try:
                shape = self._merged(kind, branch, one[-1].node.place)
            except UnsupportedError as error:
                error.place = error.place or one[-1].node.place
                raise
            if held:
                self.choices += [Choice(one, kind, shape, nodes) for nodes in held[branch]]
            if isinstance(shape, Objects):
                shape = self._discriminators.narrowed(branch, shape)
            if shape is not None:
                if shape == FULL.get(kind):
                    return (shape,)
                options.setdefault(shape)
        shapes = tuple(options)
        return absorbed(kind, joined(shapes) if len(shapes) > 1 else shapes, partial(self.budget.check, ""))

    def _merged(self, kind: str, branch: Sequence[Atom], place: str) -> Shape | None:
        """The shape of a branch, if it has a value; without what is relaxed and cannot be compiled."""
        self.budget.check("")
        if not self.relax:
            shape = merge(kind, branch, self.holds, search)
            return self._with_numbers(shape, place) if isinstance(shape, Numbers) else shape
        shape = merge(kind, branch, self._may_hold, search, self._relaxed)
        try:
            return self._with_numbers(shape, place) if isinstance(shape, Numbers) else shape
        except UnsupportedError:
            if "multipleOf" not in self.relax:
                raise
            for atom in branch:
                if isinstance(atom, Multiple):
                    self._drop(atom.place, "multipleOf")
            rest = [atom for atom in branch if not isinstance(atom, Multiple)]
            return merge(kind, rest, self._may_hold, search, self._relaxed)

    def _may_hold(self, atom: Atom, value: object) -> bool:
        """Whether an atom may hold for a concrete value, where that depends on what is dropped."""
        try:
            return self.holds(atom, value)
        except UnsupportedError as error:
            if (error.place or "").rpartition("/")[2] not in self.relax:
                raise
            return True

    def _relaxed(self, place: str, keyword: str) -> bool:
        """Whether an unsupported keyword is left out, which is reported then."""
        if (keyword if keyword not in REFERENCES else "$ref") not in self.relax:
            return False
        self._drop(place, keyword)
        return True

    def _with_numbers(self, shape: Numbers, place: str) -> Shape | None:
        """The shape; None if multiples and bounds leave no number that can be spelled; a list of those that they leave
        where these are few, and multiples too large for an automaton."""
        try:
            empty = shape.needs_machine and multiples_machine(shape, self.digits, place) is None
        except UnsupportedError:
            few = few_multiples(shape)
            if few is None:
                raise
            return Constants(tuple(Constant(freeze(number), number) for number in few)) if few else None
        return None if empty else shape

    def _drop(self, place: str, keyword: str) -> None:
        self.reader.drop(place.rpartition("/")[0], keyword)

    def holds(self, atom: Atom, value: object) -> bool:
        """Whether an atom holds for a concrete value."""
        return holds_atom(atom, value, self.parts)

    def parts(self, node: Node, kind: str) -> tuple[Formula, ...]:
        """The formula of a node with its reference followed."""
        key = (node, kind)
        found = self._parts.get(key)
        if found is None:
            self.budget.check("")
            self._check_cycles(node)
            self._settle(node)
            if KEYWORD.get(kind) in node.keywords:
                return self._parts.setdefault(key, self._unevaluated.formula(node, kind))
            agrees = kind == "object" and TAGS in node.keywords and self._discriminators.agrees(node)
            found = formula(node, kind, tagged=bool(agrees))
            if agrees is not None:
                self._parts[key] = found
            if agrees:
                self.reader.narrows(node)
        return found

    def _settle(self, node: Node) -> None:
        """Follow the reference of a node, and replace children that are nothing but a reference by what they refer to.

        So a rule is written once for a schema, whether it is reached directly or by ``$ref``.
        """
        if node in self._settled:
            return
        self._settled.add(node)
        if node.plain is not None:
            return
        try:
            self._follow(node)
        except ToolcError:
            self._settled.discard(node)  # other schemas that need it meet the same error
            raise

    def _follow(self, node: Node) -> None:
        for keyword, value in node.keywords.items():
            if isinstance(value, Target):
                node.keywords[keyword] = self.final(self.reader.follow(value))
            elif isinstance(value, Node):
                node.keywords[keyword] = self.final(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Node):
                node.keywords[keyword] = tuple(self.final(child) for child in value)
            elif isinstance(value, dict):
                node.keywords[keyword] = {
                    name: self.final(child) if isinstance(child, Node) else child for name, child in value.items()
                }

    def final(self, node: Node) -> Node:
        """The node that a chain of bare references ends in; the last one of a chain that never ends.

        A union or conjunction of one schema refers to it, too: OpenAPI documents describe references so. That of
        ``false`` does not, since an error has to name the place where it stands.
        """
        if len(node.keywords) != 1 or "type" in node.keywords:
            return node
        seen: dict[Node, None] = {}
        while len(node.keywords) == 1 and node not in seen:
            self.budget.check("")
            if node in self._final:
                node = self._final[node]
                break
            ((keyword, target),) = node.keywords.items()
            single = keyword in _OF_SCHEMAS and len(target) == 1 and "false" not in target[0].keywords
            if keyword not in REFERENCES and not single:
                break
            seen[node] = None
            if single:
                (target,) = target
            elif isinstance(target, Target):
                target = node.keywords[keyword] = self.reader.follow(target)
            node = target
        if len(seen) > 1:  # each of a long chain may be asked for
            self._final.update(dict.fromkeys(seen, node))
        return node

    # -- exactly one

    def _one_of(self, part: OneOf, kind: str) -> Formula:
        """``oneOf`` as a union: each schema without those of the others that it can overlap."""
        key = (part, kind, self._tries)
        found = self._unions.get(key)
        if found is not None:
            return found
        nodes = [node for node in part.nodes if self._brancher.possible(Literal(node), kind)]
        options: list[Formula] = []
        tagged = {node: tag for node, tag in zip(part.nodes, part.tagged, strict=False) if tag is not None}
        for node, near in zip(nodes, not_told_apart(nodes, kind), strict=True):
            others = [Literal(nodes[at], False) for at in near if not self._are_disjoint(node, nodes[at], kind)]
            said = (Literal(node), tagged[node]) if node in tagged else (Literal(node),)
            options.append(All((*said, *others)))
        found = self._unions[key] = Some(tuple(options))
        return found

    def _are_disjoint(self, one: Node, other: Node, kind: str) -> bool:
        """True only if surely no value of the kind satisfies both."""
        if one.number > other.number:
            one, other = other, one
        together = conj(Literal(one), Literal(other))
        return together is None or (one is not other and self._no_shape(together, kind))

    # -- surely without a value

    def empty(self, one: Conj) -> bool:
        """True only if surely no value satisfies a conj; not known where it takes too long to tell."""
        if not one:
            return one is None
        key = (one, "", self._tries)
        found = self._empty.get(key)
        if found is None:
            values, complete = self._some_values(one) if self._tries else ((), False)
            if complete or values:
                found = not values
            elif self._tries and self._witnesses.meet(one):
                found = False
            else:
                found = all(self._no_shape(one, kind) for kind in KINDS)
            if self._tries:  # else it may be that a reference is not followed yet
                self._empty[key] = found
        return found

    def _no_shape(self, one: tuple[Literal, ...], kind: str) -> bool:
        """True only if surely no value of the kind satisfies a conj."""
        for literal in one:
            if not self._brancher.possible(literal, kind):
                return True
        key = (one, kind, self._tries)
        found = self._empty.get(key)
        if found is None:
            found = False
            values, complete = self._some_values(one) if self._tries else ((), False)
            if any(kind_of(constant.value) == kind for constant in values):
                found = False
            elif complete:
                found = True
            elif self._tries and not self._witnesses.meet(one, kind):
                self._tries -= 1
                try:
                    found = self._try_no_shape(one, kind)
                finally:
                    self._tries += 1
            self._empty[key] = found
        return found

    def _try_no_shape(self, one: tuple[Literal, ...], kind: str) -> bool:
        self.budget.check("")
        for literal in one:
            self._check_cycles(literal.node)
        try:
            return self._brancher.surely_none(one, kind, MAX_TRIED, lambda branch: self._has_value(kind, branch))
        except UnsupportedError:
            return False  # refused where it matters, with its place

    def _has_value(self, kind: str, branch: tuple[Atom, ...]) -> bool:
        """Whether an alternative may have a value."""
        shape = merge(kind, branch, self.holds, search)
        if shape is None or self._barren(shape):
            return False
        self._keep_value(shape)
        return True

    def _keep_value(self, shape: Shape) -> None:
        """Keep a value of a shape of arrays or objects, where one is seen at once: other conjs may have it, too."""
        if isinstance(shape, Objects) and object_is_plain(shape) and shape.low <= len(shape.required):
            named = dict(shape.named)
            members = {name: self._plain_value(named[name]) for name in shape.required if name in named}
            some = {name: one.value for name, one in members.items() if one is not None}
            if len(some) == len(members):
                self._witnesses.add(some)
        elif isinstance(shape, Arrays) and array_is_plain(shape) and shape.low <= MAX_VALUES:
            items = [*shape.prefix, *[shape.rest] * shape.low][: shape.low]
            found = [one.value for one in map(self._plain_value, items) if one is not None]
            if len(found) == len(items):
                self._witnesses.add(found)

    def _plain_value(self, one: Conj) -> Constant | None:
        """One of the plain values that a conj has; None where none is seen at once."""
        values = SAMPLES if one == ANY else self._some_values(one)[0] if one else ()
        return values[0] if values else None

    def _barren(self, shape: Shape) -> bool:
        """True if a required part of the shape surely has no value."""
        if isinstance(shape, Numbers):
            return self._with_numbers(shape, "") is None
        return any(self.empty(child) for child in children_of(shape, needed=True))

    # -- soundness and emptiness

    def _check_cycles(self, start: Node) -> None:
        """Refuse a schema that refers to itself with no object or array in between: no value could be judged by it."""
        if start in self._sound:
            return
        self._settle(start)
        if _IN_PLACE.isdisjoint(start.keywords):
            self._sound.add(start)
            return
        open_nodes: dict[Node, None] = {}
        stack: list[tuple[Node, bool]] = [(start, False)]
        while stack:
            node, leave = stack.pop()
            if leave:
                del open_nodes[node]
                self._sound.add(node)
                continue
            if node in self._sound:
                continue
            if node in open_nodes:
                raise SchemaError(
                    "the schema refers to itself with nothing in between",
                    place=node.place,
                    hint="put the reference below properties or items",
                )
            open_nodes[node] = None
            stack.append((node, True))
            stack.extend((child, False) for child in self._in_place(node))

    def _in_place(self, node: Node) -> list[Node]:
        """The nodes that a node applies to the same value."""
        self._settle(node)
        children: list[Node] = []
        if _IN_PLACE.isdisjoint(node.keywords):
            return children
        for keyword in REFERENCES:
            if keyword in node.keywords:
                children.append(node.keywords[keyword])
        for keyword in ("allOf", "anyOf", "oneOf"):
            children.extend(node.keywords.get(keyword, ()))
        for keyword in ("not", "if", "then", "else"):
            if keyword in node.keywords:
                children.append(node.keywords[keyword])
        for keyword in ("dependencies", "dependentSchemas"):
            children.extend(child for child in node.keywords.get(keyword, {}).values() if isinstance(child, Node))
        return children

    def explore(self, root: tuple[Literal, ...]) -> None:
        """Find every conj below ``root`` and settle which can be satisfied."""
        self.explored.update(self._settle_below(root))

    def satisfiable(self, one: Conj) -> bool:
        """Whether some value satisfies a conj, as far as shapes tell."""
        if one:
            if not self.empty(one) and self._witnesses.meet(one):
                return True  # all its alternatives may be many more than are needed to find a value
            self._settle_below(one)
        return self.alive(one)

    def _settle_below(self, root: tuple[Literal, ...]) -> dict[tuple[Literal, ...], None]:
        """Every conj below ``root``; which of them can be satisfied is settled."""
        order: dict[tuple[Literal, ...], None] = {root: None}
        queue = [root]
        users: dict[tuple[Literal, ...], list[tuple[Literal, ...]]] = {}
        while queue:
            one = queue.pop()
            if not one or one in self._alive:
                continue
            if len(order) % 64 == 0:
                self.budget.check("states", len(order), one[0].node.place)
            for shapes in self.shapes(one).values():
                for shape in shapes:
                    for child in children_of(shape):
                        if child:
                            users.setdefault(child, []).append(one)
                            if child not in order:
                                order[child] = None
                                queue.append(child)
        work = [one for one in order if one and one not in self._alive]
        new, queued = set(work), set(work)
        while work:  # those inside first; what waits already is not asked for each of them
            one = work.pop()
            queued.remove(one)
            if self._alive.get(one):
                continue
            try:
                lives = any(self.lives(shape) for shapes in self.shapes(one).values() for shape in shapes)
            except UnsupportedError as error:
                error.place = error.place or one[-1].node.place
                raise
            if lives:
                self._alive[one] = True
                more = [user for user in dict.fromkeys(users.get(one, ())) if user in new and user not in queued]
                queued.update(more)
                work += more
        for one in new:
            self._alive.setdefault(one, False)
        return order

    def alive(self, one: Conj) -> bool:
        """Whether some value satisfies an explored conj, as far as shapes tell."""
        return one is not None and (not one or self._alive.get(one, False))

    def lives(self, shape: Shape) -> bool:
        """Whether all that a shape needs is alive."""
        if isinstance(shape, Objects):
            if not object_is_plain(shape):
                return self.object_machine(shape) is not None
            needed = set(shape.required)
            if shape.low and not needed:
                opened = self._keyed(shape, 0) and any(self.alive(one.value) for one in shape.opened)
                return opened or any(self.alive(value) for _, value in shape.named)
            return all(self.alive(value) for name, value in shape.named if name in needed)
        if isinstance(shape, Arrays):
            if not array_is_plain(shape):
                return self.strings_for_register(shape) is not None or self.array_machine(shape) is not None
            if shape.low > len(shape.prefix) and not self.alive(shape.rest):
                return False
            return all(self.alive(item) for item in shape.prefix[: shape.low])
        return not isinstance(shape, Strings) or not shape.patterns or some_string(shape)

    # -- arrays and objects by states

    def strings_for_register(self, shape: Arrays) -> list[str] | None:
        """The strings of an array of which each may stand at most once, where an automaton has too many subsets of them
        and a register can keep which there were; None of other arrays."""
        if shape.unique is None or not shape.unique.positive or shape.needs or shape.prefix or shape.low > 1:
            return None
        listed = self.finite(shape.rest, MAX_REGISTER_BITS)
        if listed is None or len(listed) <= MAX_KEYS or (shape.high is not None and shape.high < len(listed)):
            return None
        strings = [one.value for one in listed if isinstance(one.value, str)]
        return strings if len(strings) == len(listed) else None

    def array_machine(self, shape: Arrays) -> Machine | None:
        """The automaton of an array that is not plain; None if it has no value."""
        try:
            return machine.array_machine(shape, self.alive, self.finite, self.holds_all)
        except UnsupportedError as error:
            if "uniqueItems" not in self.relax or shape.unique is None:
                raise
            self._drop(error.place or shape.unique.place, "uniqueItems")
            return machine.array_machine(replace(shape, unique=None), self.alive, self.finite, self.holds_all)

    def object_machine(self, shape: Objects) -> Machine | None:
        """The automaton of an object that is not plain; None if it has no value."""
        return machine.object_machine(shape, self.alive, lambda needs: self._keyed(shape, needs))

    def any_order_machine(self, shape: Objects) -> Machine | None:
        """The automaton of an object that has a value, its declared keys in any order; None where it is too large."""
        return any_order_machine(shape, self.alive, lambda needs: self._keyed(shape, needs))

    def _keyed(self, shape: Objects, needs: int) -> bool:
        """Whether some undeclared key, as far as shapes tell, meets some needs of an object."""
        key = shape.key
        for bit, need in enumerate(shape.needs):
            if needs >> bit & 1:
                key = both(key, need.key)
        return key is not None and (not key or "string" in self.shapes(key))

    def holds_all(self, one: Conj, value: object) -> bool:
        """Whether a concrete value satisfies a conj."""
        return one is not None and all(holds_atom(literal, value, self.parts) for literal in one)

    def finite(self, one: Conj, most: int = MAX_VALUES) -> list[Constant] | None:
        """The values of a conj if they are so few, else None."""
        if one is None:
            return []
        found: dict[object, Constant] = {}
        for shapes in self.shapes(one).values() if one else ((FULL["string"],),):
            for shape in shapes:
                if isinstance(shape, Constants):
                    found.update((constant.key, constant) for constant in shape.values)
                elif isinstance(shape, Numbers) and shape.integral and shape.low is not None and shape.high is not None:
                    if shape.high - shape.low > most:
                        return None
                    for value in range(int(shape.low), int(shape.high) + 1):
                        if self.holds_all(one, value):
                            found[freeze(value)] = Constant(freeze(value), value)
                else:
                    return None
        return list(found.values()) if len(found) <= most else None

    def blamed(self, one: tuple[Literal, ...]) -> list[tuple[Literal, ...]]:
        """What explains why a conj is empty: itself, what it needs, what that needs, and so on to the innermost."""
        chain = [one]
        while True:
            dead: dict[tuple[Literal, ...], None] = {}
            for options in self.shapes(chain[-1]).values():
                for shape in options:
                    for child in children_of(shape, needed=True):
                        if child and not self._alive.get(child):
                            dead.setdefault(child)
            if len(dead) != 1 or next(iter(dead)) in chain:
                return chain
            chain += dead


def children_of(shape: Shape, needed: bool = False) -> list[Conj]:
    """The conjs of the values inside a shape; with ``needed`` only of those that must be there."""
    if isinstance(shape, Objects):
        if needed:
            return [value for name, value in shape.named if name in shape.required]
        return [*member_choices(shape), shape.key, *(need.key for need in shape.needs)]
    if isinstance(shape, Arrays):
        if needed:
            return list(shape.prefix[: shape.low]) + ([shape.rest] if shape.low > len(shape.prefix) else [])
        return item_choices(shape)
    assert isinstance(shape, Constants) or shape is not None
    return []
