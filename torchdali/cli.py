"""The command line: ``torchdali demo | bench | show | tune | stats | doctor | run | index | pack | check``.

This module doesn't import torch. Each command imports its own modules when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from torchdali.cores import cores

__all__ = ["main"]

# Modules that `import torchdali` needs, and the packages that contain them.
_NEEDED = {"torch": "torch", "torchvision": "torchvision", "numpy": "numpy", "PIL": "pillow"}


def _demo(options: argparse.Namespace) -> int:
    if options.keep is not None:
        from torchdali._demo import recipe_data

        return recipe_data.keep(options.keep)

    from torchdali import _demo

    _demo.run(options.output, options.threads, options.epochs)
    return 0


def _bench(options: argparse.Namespace) -> int:
    if options.gpu:
        from torchdali._commands import gpu

        return gpu.measure(options.folder, options.output)

    from torchdali._commands import benching

    names = {"batch": "batch_size", "threads": "threads", "batches": "batches", "size": "size"}
    sizes = {name: getattr(options, option) for name, option in names.items()}
    status = benching.run(options.folder, step=options.step / 1e3, **sizes)
    if status == 0 and options.train:
        from torchdali._commands import training

        training.run(options.folder, model=options.model, device=options.device, **sizes)
    return status


def _doctor(options: argparse.Namespace) -> int:
    if missing := [name for module, name in _NEEDED.items() if find_spec(module) is None]:
        print(f"torchdali needs packages that are not installed: pip install {' '.join(missing)}")
        return 1

    from torchdali._commands import doctoring

    return doctoring.run()


def _run(options: argparse.Namespace) -> int:
    from torchdali._commands import running

    if options.module:
        running.run(options.module[0], options.module[1:], is_module=True)
    elif options.script is None:
        print("torchdali run: pass a script, or -m and a module", file=sys.stderr)
        return 2
    else:
        running.run(options.script, options.arguments)
    return 0


def _show(options: argparse.Namespace) -> int:
    from torchdali._commands import showing

    return showing.run(options.target, options.arguments, options.output, options.each, options.count)


def _tune(options: argparse.Namespace) -> int:
    from torchdali._commands import tuning

    return tuning.run(
        options.target, options.arguments, options.seconds, options.step / 1e3, options.cores, options.memory
    )


def _stats(options: argparse.Namespace) -> int:
    from torchdali._commands import containers

    return containers.stats(options.folder, options.threads)


def _index(options: argparse.Namespace) -> int:
    from torchdali._commands import containers

    if options.manifest is not None:
        return containers.manifest(options.kind, options.paths, options.manifest)
    return containers.index(options.kind, options.paths, options.output, options.force)


def _pack(options: argparse.Namespace) -> int:
    from torchdali._commands import containers

    names = ("to", "shard_size", "shorter", "format", "quality", "skip")
    values = {name: getattr(options, name) for name in names}
    return containers.pack(options.source, options.target, options.jobs, values)


def _check(options: argparse.Namespace) -> int:
    from torchdali._commands import containers

    return containers.check(options.paths, options.decode)


def _bytes(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    digits = text[:-1] if text[-1:].upper() in units else text
    if not digits.isdecimal() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"must be a number of bytes, for example 256M, got {text!r}")
    return int(digits) << units.get(text[-1].upper(), 0)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"no such folder: {text!r}")
    return Path(text)


def _script(text: str) -> str:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text!r}")
    return text


def _network(name: str) -> str:
    if name != "small":
        from torchvision import models

        if name not in models.list_models():
            raise argparse.ArgumentTypeError(
                f"must be small or the name of a torchvision model, for example resnet50, got {name!r}"
            )
    return name


def _device(name: str) -> str:
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise argparse.ArgumentTypeError(
            f"must be a device that PyTorch can use on this machine, got {name!r}"
        ) from None
    return name


_TARGET = (
    "a pipeline, a DataLoader, a Loader, or a function that returns one, for example train.py:train; omit the name if "
    "the script has only one"
)


class _VersionOption(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        try:
            version = metadata.version("torchdali")
        except metadata.PackageNotFoundError:  # a checkout that is not installed
            from torchdali import __version__ as version
        print(f"torchdali {version}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser that suggests a similar command for an unknown command, and prints the help if no command is passed."""

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(\w+)' \(choose from (.*)\)", message)
        matches = difflib.get_close_matches(choice[1], re.findall(r"\w+", choice[2]), 1) if choice else []
        if "required: COMMAND" in message:
            self.print_help(sys.stderr)
        super().error(f"{message}; did you mean {matches[0]}?" if matches else message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="torchdali", description="A fast data loader for PyTorch, with NVIDIA DALI's operators.")
    parser.add_argument("--version", action=_VersionOption, nargs=0, help="print the version")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="train a small network on generated images",
        description="Generate images, train a small network on them, and draw a contact sheet. This takes one to "
        "five minutes.",
    )
    demo.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="don't train; write the files that the recipes read to this folder, without replacing existing files",
    )
    demo.add_argument(
        "--output", type=Path, default=Path("torchdali_demo.png"), metavar="PNG", help="file of the contact sheet"
    )
    demo.add_argument("--epochs", type=_positive, default=16, help="epochs to train")
    demo.set_defaults(command=_demo)

    bench = commands.add_parser(
        "bench",
        help="measure a folder of your images",
        description="Load a folder's images as for training, time each operator, and find the bottleneck.",
    )
    bench.add_argument("folder", type=_folder, metavar="DIR", help="folder of images, searched recursively")
    bench.add_argument("--batch-size", type=_positive, default=64, help="images per batch")
    bench.add_argument("--batches", type=_positive, default=50, help="batches to time")
    bench.add_argument("--size", type=_positive, default=224, help="height and width of the crops")
    bench.add_argument(
        "--step",
        type=float,
        default=0,
        metavar="MS",
        help="also run with a consumer that takes this long per batch",
    )
    bench.add_argument("--train", action="store_true", help="also train, and find the bottleneck of the training loop")
    bench.add_argument(
        "--model",
        type=_network,
        default="small",
        metavar="NAME",
        help="model to train: the name of a torchvision model, or small for the demo's network",
    )
    bench.add_argument("--device", type=_device, help="device to train on; by default a GPU if there is one")
    bench.add_argument("--gpu", action="store_true", help="measure and check the GPU operators instead")
    bench.add_argument(
        "--output", type=Path, default=Path("gpu.jsonl"), metavar="JSONL", help="file for the results of --gpu"
    )
    bench.set_defaults(command=_bench)

    show = commands.add_parser(
        "show",
        help="draw a batch of a script's loader as a contact sheet",
        description="Draw the next batch of a script's pipeline or loader. Code under "
        'if __name__ == "__main__" does not run.',
    )
    show.add_argument("target", metavar="SCRIPT[:NAME]", help=_TARGET)
    show.add_argument("arguments", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of the function")
    show.add_argument("--each", action="store_true", help="draw a row after each operator")
    show.add_argument("--count", type=_positive, metavar="N", help="samples to draw")
    show.add_argument(
        "--output", type=Path, default=Path("torchdali_show.png"), metavar="PNG", help="file of the contact sheet"
    )
    show.set_defaults(command=_show)

    tune = commands.add_parser(
        "tune",
        help="find the fastest settings of a script's pipeline or loader",
        description="Measure a script's pipeline or loader with different numbers of threads, processes or workers, "
        'and print the best line of code. Code under if __name__ == "__main__" does not run.',
    )
    tune.add_argument("target", metavar="SCRIPT[:NAME]", help=_TARGET)
    tune.add_argument("arguments", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of the function")
    tune.add_argument(
        "--seconds", type=_positive, default=60, help="time limit of all measurements, without the script's start"
    )
    tune.add_argument("--step", type=float, default=0, metavar="MS", help="duration of your training step")
    tune.add_argument("--cores", type=_positive, metavar="N", help="largest number of threads and of processes to try")
    tune.add_argument("--memory", type=_bytes, metavar="BYTES", help="memory limit of the prefetched batches")
    tune.set_defaults(command=_tune)

    stats = commands.add_parser(
        "stats",
        help="describe a folder of images",
        description="Decode all images of a folder once. Print their sizes, formats and classes, the mean and standard "
        "deviation of the pixels, and the broken files.",
    )
    stats.add_argument("folder", type=_folder, metavar="DIR", help="folder of images, searched recursively")
    stats.set_defaults(command=_stats)

    doctor = commands.add_parser(
        "doctor",
        help="check this installation",
        description="Try the fast path, the devices and the image codecs on small data, list the extras, and print the "
        "commands that install missing parts. The exit status is 1 if an installed part does not work.",
    )
    doctor.set_defaults(command=_doctor)

    run = commands.add_parser(
        "run",
        help="run a script with torchdali instead of nvidia.dali and of PyTorch's DataLoader",
        description="Run an unchanged script like python does. In the script and in the processes that it starts, "
        "`import nvidia.dali` imports torchdali, and PyTorch's DataLoader is torchdali's. DALI need not be installed. "
        "At the end, the command prints a summary of the script's loaders.",
    )
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    run.add_argument("script", type=_script, nargs="?", metavar="SCRIPT", help="path of the script")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="arguments of the script")
    run.set_defaults(command=_run)

    _add_containers(commands)
    for command in (demo, bench, stats):
        command.add_argument("--threads", type=_positive, default=min(4, cores()), help="threads of the loader")
    return parser


def _add_containers(commands: argparse._SubParsersAction[_Parser]) -> None:
    index = commands.add_parser(
        "index",
        help="write index files for containers",
        description="Read containers once, and write an index file next to each, with the offsets of its records. "
        "Without an index, a reader scans the entire container when it starts.",
    )
    index.add_argument("kind", choices=("tfrecord", "webdataset", "mxnet"), help="format of the containers")
    index.add_argument("paths", nargs="+", metavar="PATH", help="path or URL of a container")
    index.add_argument("--output", metavar="DIR", help="folder of the index files; by default, each container's folder")
    index.add_argument(
        "--manifest",
        metavar="JSON",
        help="write one file (path or URL) with the sizes, ETags and indices of all containers instead; with it, a "
        "reader opens all shards with one request",
    )
    index.add_argument("--force", action="store_true", help="replace existing index files")
    index.set_defaults(command=_index)

    pack = commands.add_parser(
        "pack",
        help="pack images into shards",
        description="Write the images of a folder or of containers into archives of equal size, unchanged or shrunk. "
        "The names of the class folders are the labels. If a run was stopped, the next run continues it.",
    )
    pack.add_argument("source", metavar="SRC", help="folder of class folders, or containers")
    pack.add_argument("target", metavar="DST", help="folder for the shards")
    pack.add_argument("--to", choices=("webdataset", "tfrecord"), default="webdataset", help="format of the shards")
    pack.add_argument(
        "--shard-size", type=_bytes, default=256 << 20, metavar="BYTES", help="size of a shard; 256M by default"
    )
    pack.add_argument(
        "--shorter", type=_positive, metavar="N", help="shrink images until the shorter side has N pixels"
    )
    pack.add_argument("--format", choices=("jpeg", "webp", "raw"), help="encode all images in this format")
    pack.add_argument("--quality", type=_positive, default=92, help="quality of JPEG and WebP images, 1 to 100")
    pack.add_argument(
        "--skip", action="store_true", help="decode each image, and skip images that cannot be read or decoded"
    )
    pack.add_argument("--jobs", type=_positive, default=cores(), help="number of shards to write in parallel")
    pack.set_defaults(command=_pack)

    check = commands.add_parser(
        "check",
        help="read files once, and list broken files",
        description="Read images, arrays and containers once, decode the images, and list the files that would stop a "
        "training. The exit status is 1 if a file is broken.",
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, or URL of a file")
    check.add_argument("--no-decode", dest="decode", action="store_false", help="do not decode images")
    check.set_defaults(command=_check)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if options.command is _run:
            raise
        # The program that reads the output, for example `head`, has closed the pipe. Without this redirection, Python
        # would report the error again when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        if options.command is _run:  # the interrupt is raised as in a run without torchdali
            raise
        print("interrupted", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    raise SystemExit(main())
