"""The jobs of `privmax learn`: one rule of a class, or the model of the classifier."""
