"""`torchdali.DataLoader`, a drop-in replacement for PyTorch's `DataLoader`.

==============================  ==========================================================================
`_loader`                       the class
`_plans`, `_image_plans`        decide whether torchdali accelerates a loader
`_pristine`                     checks that PyTorch would run only its own and torchvision's code for a sample
`_notes`                        messages: which parts are accelerated, and why other parts aren't
`_sources`                      reads torchvision's datasets
`_rules`, `_chains`             translate torchvision's transforms into steps
`_engines`, `_rows`, `_idle`    create batches from indices, in threads
`_iterators`                    the accelerated iterator
`_torch_internals`              subclasses of PyTorch's iterators; the only module that uses PyTorch's private names
`_states`, `_generators`        save and load positions in an epoch, with the states of random number generators
`_lazy_opening`                 lets Pillow open JPEGs as lazy images, in loaders that aren't accelerated
`_lazy_images`                  lazy images: only the region that the transforms keep is decoded
`_lazy_compose`                 converts a lazy image to a normalized tensor in one call
`_lazy_colors`                  delays torchvision's color changes until a lazy image is decoded
`_worker_blocks`                reusable shared memory for the batches of PyTorch's workers
`_skipping`                     skips damaged samples
`_reports`                      times of loops, and `tune`
==============================  ==========================================================================
"""

from torchdali.dataloader._loader import DataLoader

__all__ = ["DataLoader"]
