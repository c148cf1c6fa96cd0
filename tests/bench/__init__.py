"""The figures of `make bench`: offload beside programs that do the same in the stock way, all in one run."""
