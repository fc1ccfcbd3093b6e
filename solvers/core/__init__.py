"""What everything below stands on: arrays, errors, parameter checks, search-space declarations and compiled kernels."""
