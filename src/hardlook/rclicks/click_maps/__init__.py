"""Click models drawn over one image: heat maps, clicking groups and samples."""
