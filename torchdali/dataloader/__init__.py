"""`torchdali.DataLoader`, a drop-in replacement for PyTorch's `DataLoader`.

==============================  ==========================================================================
`_loader`                       the class
`_plans`, `_picture_plans`      decide whether torchdali accelerates a loader
`_pristine`                     checks that PyTorch would run only its own and torchvision's code for a sample
`_notes`                        messages: which parts are accelerated, and why other parts aren't
`_sources`                      reads torchvision's datasets
`_rules`, `_chains`             translate torchvision's transforms into steps
`_engines`, `_rows`, `_idle`    create batches from indices, in threads
`_iterators`                    the accelerated iterator
`_torch_internals`              subclasses of PyTorch's iterators; the only module that uses PyTorch's private names
`_states`, `_generators`        positions in an epoch, and the states of their random number generators
`_lazy_opening`                 makes Pillow open JPEGs as lazy images, in PyTorch's workers
`_lazy_images`                  the lazy image
`_lazy_compose`                 converts a lazy image to a normalized tensor in one call
`_lazy_colors`                  delays torchvision's color changes until a lazy image is decoded
`_skipping`                     skips damaged samples
`_reports`                      times of loops, and `tune`
==============================  ==========================================================================
"""

from torchdali.dataloader._loader import DataLoader

__all__ = ["DataLoader"]
