"""What the command line runs, one file a command; they use nothing but the public API."""
