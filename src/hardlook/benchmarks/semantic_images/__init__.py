"""Images with label maps: what closed and open mIoU share, from files to records."""
