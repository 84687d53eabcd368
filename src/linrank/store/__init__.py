"""Stores: data sets on disk as folders of plain arrays, cut into chunks of whole queries."""
