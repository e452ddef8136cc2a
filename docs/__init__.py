"""The site: pages, and the code that builds it."""
