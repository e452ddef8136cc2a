"""`torchdali.DataLoader`, in the place of torch's.

======================  ================================================================
`_loader`               the class
`_plans`                decides what is accelerated
`_sources`              takes data sets of torchvision apart
`_rules`, `_chains`     the steps of its transforms
`_engines`              make batches from indices
`_iterators`            loops over them
======================  ================================================================
"""

from torchdali.dataloader._loader import DataLoader

__all__ = ["DataLoader"]
