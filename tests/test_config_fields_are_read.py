"""Every field of the configuration is read by some code: a setting without effect is a lie.

The reads are found in the syntax trees of the package, by a small type inference: a read counts
only as an attribute of a value that is known to be that section. So ``env.num_games`` of a
`VectorShogi` called ``env`` doesn't pass for the setting of the same name.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

import keisei
from keisei.config import sections
from keisei.config_schema import AppConfig

PACKAGE = Path(keisei.__file__).parent
NETWORK = PACKAGE / "models" / "network.py"

IGNORED = {PACKAGE / "config_schema.py", *(PACKAGE / "training").glob("display_*.py")}
"""The schema itself, and what only shows a setting: that is no effect."""

SECTION_OF = {section.__name__: name for name, section in sections().items()}
"""Names of sections by the name of their class."""

FIELDS = {
    f"{name}.{field}" for name, section in sections().items() for field in section.model_fields
}


class Reader:
    """Collects which settings are read in some modules."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        """``section.field`` of each setting that is read."""

        self._attributes: dict[str, dict[str, str]] = {
            AppConfig.__name__: {name: type_name for type_name, name in SECTION_OF.items()}
        }
        """Class of each attribute, or of what a method returns, by class."""

        self._bases: dict[str, list[str]] = {}
        self._results: dict[str, str] = {}
        """Class of what a function returns."""

    def read(self, modules: Sequence[ast.Module]) -> None:
        """Again and again until nothing new is learned about the attributes of classes."""
        known = -1
        while known < (known := sum(map(len, self._attributes.values())) + len(self._results)):
            for module in modules:
                self._block(module.body, {}, None)

    def _block(self, body: Iterable[ast.AST], names: dict[str, str], owner: str | None) -> None:
        for node in body:
            match node:
                case ast.ClassDef():
                    self._attributes.setdefault(node.name, {})
                    self._bases[node.name] = [base for b in node.bases if (base := class_named(b))]
                    self._block(node.body, dict(names), node.name)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, names, owner)
                case ast.Lambda():
                    hidden = {parameter.arg for parameter in node.args.args}
                    visible = {name: names[name] for name in names.keys() - hidden}
                    self._block([node.body], visible, None)
                case _:
                    self._block(ast.iter_child_nodes(node), names, owner)
                    self._statement(node, names, owner)

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        names: Mapping[str, str],
        owner: str | None,
    ) -> None:
        if result := class_named(node.returns):
            (self._results if owner is None else self._attributes[owner])[node.name] = result
        inner = dict(names)
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for parameter in parameters:
            inner.pop(parameter.arg, None)
            if type_name := class_named(parameter.annotation):
                inner[parameter.arg] = type_name
        if owner is not None and parameters:
            inner[parameters[0].arg] = owner
        self._block(node.body, inner, None)

    def _statement(self, node: ast.AST, names: dict[str, str], owner: str | None) -> None:
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._bind(target, self._class_of(value, names), names, owner)
            case ast.AnnAssign(target=target, annotation=annotation):
                self._bind(target, class_named(annotation), names, owner)
            case ast.Attribute(value=value, attr=attribute, ctx=ast.Load()):
                section = SECTION_OF.get(self._class_of(value, names) or "")
                self.reads |= {f"{section}.{attribute}"} & FIELDS

    def _bind(
        self, target: ast.expr, type_name: str | None, names: dict[str, str], owner: str | None
    ) -> None:
        if isinstance(target, ast.Name) and owner is None:
            names.pop(target.id, None)
        if type_name is None:
            return
        match target:
            case ast.Name(id=name):
                (names if owner is None else self._attributes[owner])[name] = type_name
            case ast.Attribute(value=value, attr=attribute):
                holder = self._class_of(value, names)
                if holder in self._attributes:
                    self._attributes[holder][attribute] = type_name

    def _class_of(self, node: ast.expr, names: Mapping[str, str]) -> str | None:
        match node:
            case ast.Name(id=name):
                return names.get(name)
            case ast.Attribute(value=value, attr=attribute):
                return self._attribute(self._class_of(value, names), attribute)
            case ast.Call(func=ast.Name(id=name)):
                return name if name in self._attributes else self._results.get(name)
            case ast.Call(func=ast.Attribute() as method):
                return self._class_of(method, names)
            case ast.IfExp(body=body, orelse=other):
                return self._class_of(body, names) or self._class_of(other, names)
        return None

    def _attribute(self, holder: str | None, attribute: str) -> str | None:
        if holder is None:
            return None
        own = self._attributes.get(holder, {}).get(attribute)
        inherited = (self._attribute(base, attribute) for base in self._bases.get(holder, ()))
        return own or next(filter(None, inherited), None)


def class_named(annotation: ast.expr | None) -> str | None:
    """The class that an annotation names, also as a text, with a module, or with ``| None``."""
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str(text)):
            return class_named(ast.parse(text, mode="eval").body)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return class_named(left) or class_named(right)
    return None


def reads_of(*sources: str) -> set[str]:
    reader = Reader()
    reader.read([ast.parse(source) for source in sources])
    return reader.reads


def keywords_used(module: ast.Module, class_name: str) -> set[str]:
    """The keyword arguments that the constructor of a class takes and uses."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    used = {
                        name.id
                        for part in method.body
                        for name in ast.walk(part)
                        if isinstance(name, ast.Name)
                    }
                    return used & {parameter.arg for parameter in method.args.kwonlyargs}
    raise AssertionError(f"{class_name} has no constructor")


def test_every_field_is_read() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if path not in IGNORED]
    reads = reads_of(*(path.read_text(encoding="utf-8") for path in paths))
    # `build_model` hands the whole section over as keyword arguments.
    network = ast.parse(NETWORK.read_text(encoding="utf-8"))
    reads |= {f"model.{name}" for name in keywords_used(network, "ActorCritic")}
    unread = sorted(FIELDS - reads)
    assert not unread, (
        f"{len(unread)} of {len(FIELDS)} fields are read by nothing in keisei/: {', '.join(unread)}"
        "\nA read counts as an attribute of a value whose class is known from an annotation, such"
        " as config.ppo.epochs where config: AppConfig, or config.epochs where config: PPOConfig."
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(config: AppConfig): return config.ppo.epochs",
        "def f(config: 'AppConfig | None'): return config.ppo.epochs",
        "def f(*, ppo: config_schema.PPOConfig): print(ppo.epochs)",
        "def f(x: AppConfig):\n    y = x.ppo\n    return [y.epochs for _ in range(3)]",
        "def f(x: AppConfig):\n    def g(): return x.ppo.epochs\n    return lambda: g()",
        "def f(): return load().ppo.epochs\ndef load() -> AppConfig: ...",
        "class A:\n    def __init__(self, c: PPOConfig): self.c = c\n"
        "    def f(self): self.c.epochs",
        "class A:\n    c: AppConfig\nclass B(A):\n    def f(self): return self.c.ppo.epochs",
        "class B:\n    def f(self, a: A): return a.c.epochs\nclass A:\n    c: PPOConfig",
        "class A:\n    @property\n    def c(self) -> PPOConfig: ...\n"
        "def f(a: A): return a.c.epochs",
        "def f(ppo: PPOConfig):\n    ppo = ppo.epochs",
        "with open(AppConfig().ppo.epochs): pass",
    ],
)
def test_reads_are_found(source: str) -> None:
    assert reads_of(source) == {"ppo.epochs"}


@pytest.mark.parametrize(
    "source",
    [
        "def f(ppo: Other): return ppo.epochs",
        "def f(config): return config.ppo.epochs",
        "def f(ppo: PPOConfig):\n    ppo = other()\n    return ppo.epochs",
        "def f(ppo: PPOConfig): ppo.epochs = 3",
        "def f(ppo: PPOConfig): return ppo.model_dump()",
        "def f(ppo: PPOConfig): return lambda ppo: ppo.epochs",
        "def f(env: EnvConfig):\n    def g(env): return env.num_games",
    ],
)
def test_other_attributes_don_t_count(source: str) -> None:
    assert reads_of(source) == set()


def test_reads_are_found_across_modules() -> None:
    agent = "class Agent:\n    def __init__(self, config: PPOConfig): self.config = config"
    trainer = "def train(agent: Agent): return agent.config.epochs"
    assert reads_of(trainer, agent) == {"ppo.epochs"}


def test_keywords_count_when_they_are_used() -> None:
    source = "class A:\n    def __init__(self, a, *, b, c, d):\n        f(a, c=b)\n        g(d)"
    assert keywords_used(ast.parse(source), "A") == {"b", "d"}
    with pytest.raises(AssertionError, match="B has no constructor"):
        keywords_used(ast.parse(source), "B")
