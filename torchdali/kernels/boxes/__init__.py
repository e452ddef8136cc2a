"""Functions on bounding boxes: choose random windows that keep boxes, and match boxes with anchors."""
