"""The stubs of `fn`, `ops` and the dynamic mode, which a build generates from the declarations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torchdali
import torchdali.ops
from torchdali import dynamic, fn
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Choices, split
from torchdali.stubs import dynamic as of_dynamic
from torchdali.stubs.operators import ignored_arguments, stubs

ROOT = Path(torchdali.__file__).parent
ALL = {**stubs(), **of_dynamic.stubs()}


def test_a_build_writes_stubs_without_torch(tmp_path):
    """The packages that torchdali depends on are not installed yet; only Python's standard library is."""
    old = tmp_path / "ops" / "gone.pyi"
    old.parent.mkdir()
    old.touch()
    code = f"import runpy, sys; sys.path.append({str(ROOT.parent)!r}); runpy.run_module('torchdali.stubs', run_name='__main__', alter_sys=True)"
    subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code, str(tmp_path)], check=True)
    written = {path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.pyi")}
    assert written == ALL


def test_placeholders_replace_only_missing_packages():
    code = "\n".join((
        f"import sys; sys.path.append({str(ROOT.parent)!r})",
        "from torchdali.stubs.placeholders import replace_missing; replace_missing()",
        "import json, torch, torch.nn.functional as F",
        "assert torch.uint8 is torch.uint8 and torch.uint8 is not torch.int8 and {torch.uint8: 1}[torch.uint8] == 1",
        "class Net(torch.nn.Module): pass",
        "@torch.no_grad()\ndef one(): return 1",
        "assert one() == 1 and not isinstance(1, torch.Tensor) and list(torch.arange(3)) == []",
        "assert F.pad(torch.eye(3) @ torch.eye(3)[0] - 1) is not None and (torch.Tensor | None) is not None and json.dumps(1) == '1'",
        "import a_package_that_is_not_there",
    ))
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"


def test_every_argument_is_in_the_stub():
    text = stubs()["fn/__init__.pyi"]
    assert "def crop(" in text and "mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None" in text
    assert "crop_w: float | DataNode | TensorList = ..." in text


def test_arguments_that_change_nothing_come_last():
    resize = registry["resize"]
    assert ignored_arguments(resize) == {"bytes_per_sample_hint", "minibatch_size", "preserve", "temp_buffer_hint"}
    lines = stubs()["fn/__init__.pyi"].split("\ndef resize(\n")[1].split("\n) ->")[0].splitlines()
    assert [line.split(":")[0].strip() for line in lines[-4:]] == sorted(ignored_arguments(resize))


def test_stubs_have_the_docstrings():
    for path in ("fn/__init__.pyi", "ops/__init__.pyi"):
        for line in fn.resize.__doc__.splitlines():
            assert line in ALL[path]


def test_operators_accept_all_listed_choices():
    for operator in registry.values():
        for argument in operator.schema.arguments.values():
            _, marks, optional = split(argument.annotation)
            choices = [mark.values for mark in marks if isinstance(mark, Choices)]
            if choices and not argument.required:
                assert argument.default in choices[0] or optional, (operator.name, argument.name)


def test_the_number_of_outputs_is_known_where_it_can_be():
    text = ALL["fn/__init__.pyi"] + ALL["fn/readers.pyi"]
    results = dict(re.findall(r"^def (\w+)\(\n(?:    .*\n)*\) -> (.*):$", text, flags=re.MULTILINE))
    assert results["file"] == "tuple[DataNode, DataNode]" and results["coco"] == "tuple[DataNode, ...]"
    assert results["tfrecord"] == "dict[str, DataNode]" and results["crop"] == "_T"
    forms = re.findall(r"^def external_source\(\n(?:    .*\n)*\) -> (.*):$", text, flags=re.MULTILINE)
    assert forms == ["DataNode", "tuple[DataNode, ...]"]


def test_the_stub_of_the_dynamic_mode_has_its_own_names():
    text = ALL["experimental/dynamic/__init__.pyi"]
    for name in dynamic.__all__:
        assert f" import {name} as {name}\n" in text or f"\ndef {name}(" in text, name
    assert "def crop(\n    input: Batch,\n    /," in text
    assert "class File(Reader):" in ALL["experimental/dynamic/readers.pyi"]
    assert "from torchdali.experimental.dynamic._rng import RNG as RNG" in ALL["experimental/dynamic/random.pyi"]
