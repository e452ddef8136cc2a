"""Warps: sampling at any positions, and the maps that compute positions."""
