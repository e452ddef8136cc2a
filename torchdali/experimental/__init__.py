"""APIs that DALI calls experimental: the dynamic mode."""
