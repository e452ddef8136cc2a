"""`torchdali.DataLoader`, a drop-in replacement for torch's.

==============================  ==========================================================================
`_loader`                       the class
`_plans`, `_picture_plans`      decide whether torchdali makes the samples
`_pristine`                     checks that torch would run only torch's and torchvision's code for a sample
`_notes`                        messages: which parts are accelerated, and why others aren't
`_sources`                      reads datasets of torchvision
`_rules`, `_chains`             translate transforms of torchvision into steps
`_engines`, `_rows`, `_idle`    make batches from indices, in threads
`_iterators`                    the accelerated iterator
`_torch_internals`              torch's iterators; the only module that uses private names of torch
`_states`, `_generators`        positions in an epoch, and the random numbers that belong to them
`_lazy_opening`                 lets Pillow open JPEGs as lazy images, in torch's workers
`_lazy_images`                  the lazy image
`_lazy_compose`                 converts a lazy image to a normalized tensor in one call
`_lazy_colors`                  delays torchvision's color changes until a lazy image is decoded
`_skipping`                     skips damaged samples
`_reports`                      times of loops, and `tune`
==============================  ==========================================================================
"""

from torchdali.dataloader._loader import DataLoader

__all__ = ["DataLoader"]
