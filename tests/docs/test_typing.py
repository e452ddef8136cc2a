"""A user's program passes a type checker, and its mistakes do not; `help` says all."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchdali import fn, ops
from torchdali.descriptions import described
from torchdali.registry import registry

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = '''
import torch

from torchdali import Pipeline, fn, ops, pipeline_def, types
from torchdali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def pipe(root: str, size: int = 8):
    jpegs, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.decoders.image(jpegs, output_type=types.RGB)
    images = fn.resize(images, size=[size, size], interp_type=types.INTERP_LINEAR)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT)
    return images * 0.5 + 1, labels > 3, images[0:2]


made: Pipeline = pipe("images", size=16, batch_size=2)
(images, labels, part) = made.run()
first = images.at(0)
total: torch.Tensor = fn.flip(torch.zeros(4, 4, 3))
halves = ops.PythonFunction(lambda x: (x, x), 2)
loader = DALIGenericIterator(made, ["images", "labels"], last_batch_policy=LastBatchPolicy.PARTIAL)
for batch in loader:
    known: list[dict[str, torch.Tensor]] = batch
    loss = (batch[0]["images"].float() ** 2).mean()
    loss.backward()
for item in DALIClassificationIterator(made):
    target: torch.Tensor = item[0]["label"].squeeze(-1).long()
'''

MISTAKES = {
    'fn.resize(torch.zeros(2, 2, 3), size="224")': "arg-type",
    "fn.resize(torch.zeros(2, 2, 3), siez=[2, 2])": "call-arg",
    'next(loader)[0]["images"].no_such_method()': "attr-defined",
    "number: int = next(loader)": "assignment",
    "Pipeline(batch_size=[1])": "arg-type",
}


@pytest.mark.slow
def test_a_type_checker_takes_correct_programs_only(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs mypy, of the extra 'lint'")
    program = tmp_path / "program.py"
    wrong = "\n".join(MISTAKES)
    start = len((PROGRAM + "\n").splitlines()) + 1
    program.write_text(f"{PROGRAM}\n{wrong}\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--check-untyped-defs", "--no-error-summary", "--follow-imports=silent",
         "--cache-dir", str(ROOT / ".mypy_cache"), str(program)],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {
        int(line.split(":")[1]): line for line in done.stdout.splitlines() if ": error:" in line
    }
    assert sorted(found) == list(range(start, start + len(MISTAKES))), done.stdout + done.stderr
    for line, kind in zip(sorted(found), MISTAKES.values(), strict=True):
        assert f"[{kind}]" in found[line]


def test_help_describes_every_argument() -> None:
    missing = {}
    for operator in registry.values():
        if operator.options.hidden or not operator.body.__module__.startswith("torchdali."):
            continue
        text = inspect.getdoc(described(operator)) or ""
        arguments = [a.name for a in operator.schema.arguments.values() if not a.hidden]
        lacking = [name for name in arguments if f"    {name}: " not in text]
        if lacking and operator.name != "external_source":
            missing[operator.name] = lacking
    assert not missing
    assert ops.Resize.__doc__ == fn.resize.__doc__


def test_signatures_are_plain() -> None:
    assert "Annotated" not in str(inspect.signature(fn.resize))
    assert "size: list[float] | None = None" in str(inspect.signature(fn.resize))


@pytest.mark.slow
def test_a_reader_of_the_output_may_have_enough() -> None:
    command = [sys.executable, "-m", "torchdali", "doctor"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 141 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
