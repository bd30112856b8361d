"""All keys that enough individuals have, where nobody can list the keys."""
