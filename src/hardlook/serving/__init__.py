"""What every server of ours needs: who may ask, headers of every answer, a socket that says early what is wrong."""
