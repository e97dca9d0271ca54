"""The clickability network: SegNeXt-B that also sees two masks, and says where people would click."""
