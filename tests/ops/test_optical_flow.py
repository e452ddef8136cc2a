"""Optical flow: known motions are found, on every grid, from hints, and in pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from torchdali import fn, pipeline_def, types

TEXTURE = functional.interpolate(
    torch.rand(1, 3, 30, 38, generator=torch.Generator().manual_seed(0)), scale_factor=4, mode="bicubic"
)  # fmt: skip


def moving(dx: int, dy: int, frames: int = 2, channels: int = 3) -> torch.Tensor:
    """Return frames in which everything moves by the same number of pixels each time."""
    cut = [
        TEXTURE[0, :channels, 30 - i * dy : 90 - i * dy, 30 - i * dx : 110 - i * dx]
        for i in range(frames)
    ]
    return (torch.stack(cut).clamp(0, 1) * 255).round().to(torch.uint8).movedim(1, -1).contiguous()


def found(frames: torch.Tensor, *hints: torch.Tensor, **arguments: Any) -> torch.Tensor:
    return fn.optical_flow.implementation(frames, *hints, **arguments)


def far(flow: torch.Tensor, dx: int, dy: int) -> float:
    """Return the median distance from the true motion."""
    return float((flow - torch.tensor([dx, dy])).norm(dim=-1).median())


@pytest.mark.parametrize("dx, dy", [(0, -2), (3, -2), (-6, 4)])
@pytest.mark.parametrize("preset", [0.0, 0.5, 1.0])
def test_moves_are_found(dx: int, dy: int, preset: float) -> None:
    flow = found(moving(dx, dy), preset=preset, output_grid=1)
    assert flow.shape == (1, 60, 80, 2) and flow.dtype == torch.float32
    assert far(flow, dx, dy) < 0.15


@pytest.mark.parametrize("grid", [1, 2, 4])
def test_grids_hold_means(grid: int) -> None:
    frames = moving(2, 1, 3)[:, :58, :77]
    flow = found(frames, output_grid=grid)
    assert flow.shape == (2, -(-58 // grid), -(-77 // grid), 2)
    fine = found(frames, output_grid=1)
    assert torch.allclose(
        flow[:, 3, 5], fine[:, 3 * grid : 4 * grid, 5 * grid : 6 * grid].mean((1, 2)), atol=1e-4
    )


def test_colors_have_an_order() -> None:
    frames = moving(3, 1)
    rgb, bgr = (
        found(f, image_type=t) for f, t in ((frames, types.RGB), (frames.flip(-1), types.BGR))
    )
    assert torch.allclose(rgb, bgr, atol=1e-5)
    assert far(found(moving(3, 1, channels=1), image_type=types.GRAY), 3, 1) < 0.15


def test_hints_are_where_the_search_starts() -> None:
    """Stripes repeat every 8 pixels: the hint selects one of the matching motions."""
    stripes = (
        (127 + 120 * torch.sin(torch.arange(96) * (2 * np.pi / 8))).to(torch.uint8).expand(64, 96)
    )
    frames = torch.stack([stripes, stripes.roll(2, 1)])[..., None]
    for move in (2, 10):
        hints = torch.zeros(1, 8, 12, 2)
        hints[..., 0] = move
        flow = found(
            frames,
            hints,
            enable_external_hints=True,
            hint_grid=8,
            image_type=types.GRAY,
            output_grid=1,
        )
        assert abs(float(flow[..., 20:-20, 0].median()) - move) < 1


def test_temporal_hints() -> None:
    frames = moving(4, 1, 4)
    flow = found(frames, enable_temporal_hints=True, preset=1.0)
    assert flow.shape == (3, 15, 20, 2) and far(flow, 4, 1) < 0.15


def test_in_a_pipeline() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id="cpu")
    def define() -> Any:
        frames = fn.external_source(source=lambda: [moving(1, 0, 3), moving(0, 2)], layout="FHWC")
        return fn.optical_flow(frames.gpu(), output_grid=2)

    pipe = define()
    try:
        (flow,) = pipe.run()
        assert flow.layout() == "FHWC"
        assert [tuple(s.shape) for s in flow.samples()] == [(2, 30, 40, 2), (1, 30, 40, 2)]
        assert far(flow.samples()[1], 0, 2) < 0.15
    finally:
        pipe.close()


def test_optical_flow_runs_only_on_the_accelerator() -> None:
    with pytest.raises(ValueError, match="not available on device 'cpu'"):
        pipeline_def(batch_size=1, num_threads=1, device_id=None)(
            lambda: fn.optical_flow(
                fn.external_source(source=lambda: [moving(1, 0)], layout="FHWC")
            )
        )()


BAD: list[tuple[torch.Tensor, tuple[torch.Tensor, ...], dict[str, Any]]] = [
    (moving(0, 0, 1), (), {}),
    (moving(0, 0), (), {"output_grid": 3}),
    (moving(0, 0), (), {"hint_grid": 3}),
    (moving(0, 0), (), {"preset": 0.3}),
    (moving(0, 0), (), {"image_type": types.GRAY}),
    (moving(0, 0), (), {"image_type": types.YCbCr}),
    (moving(0, 0), (), {"enable_external_hints": True}),
    (moving(0, 0), (torch.zeros(1, 15, 20, 2),), {}),
    (moving(0, 0), (torch.zeros(1, 15, 19, 2),), {"enable_external_hints": True}),
]


@pytest.mark.parametrize("frames, hints, arguments", BAD, ids=lambda v: str(v)[:40])
def test_errors(
    frames: torch.Tensor, hints: tuple[torch.Tensor, ...], arguments: dict[str, Any]
) -> None:
    with pytest.raises(RuntimeError):
        found(frames, *hints, **arguments)
