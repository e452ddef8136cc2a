"""A module of settings, of which `outside_values` reads one."""

strength = 0.0
unused = 0.0
