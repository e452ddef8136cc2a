"""Functions on segmentation masks: find connected components and foreground elements."""
