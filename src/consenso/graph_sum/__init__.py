"""Public facts of a sum on a graph: spanning trees, mask graphs, and which nodes are together once others are gone.

Nothing here knows of noise, observers or messages: who learns what is in `consenso.privacy.graph_views`, how the nodes
talk and mask in `consenso.secure_sum.tree_peer` and `consenso.secure_sum.edge_masks`.
"""

from consenso.graph_sum.mask_graph import add_mask_edges, is_connected_without
from consenso.graph_sum.trees import Tree, find_component, spanning_tree

__all__ = ["Tree", "add_mask_edges", "find_component", "is_connected_without", "spanning_tree"]
