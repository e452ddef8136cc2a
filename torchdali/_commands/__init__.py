"""Commands of the command line, one file each; they use nothing but the public API."""
