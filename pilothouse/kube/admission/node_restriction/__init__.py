"""NodeRestriction: a kubelet writes its own objects only, and of its own Node only what is its to say."""
