"""The dynamic mode with other libraries of PyTorch."""
