"""Finding candidates: the legs, the fusion of their rankings, and what turns a fused score into a judgement."""
