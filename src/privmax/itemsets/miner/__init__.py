"""The window miner: every itemset down to a given support, with its exact support."""
