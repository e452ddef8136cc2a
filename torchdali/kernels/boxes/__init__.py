"""Bounding boxes: random windows around them, and anchors that match them."""
