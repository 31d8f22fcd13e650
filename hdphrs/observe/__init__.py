"""Looking at runs: replaying what nodes have recorded."""
