(* The fit of an additive model: rounds of a choice and two noisy sums, each by the model so far.

   Page: docs/proofs/additive.md. How costs of rounds add up enters as a relation between laws: for
   zCDP, near rho says that both Rényi divergences of order a are at most rho a. *)
From Privmax Require Import Prelude Definitions Scores Exponential NoisyCounts.

(* "The draw is epsilon'-private, has range epsilon'": all probabilities move by factors in one
   interval whose ends have the ratio r. *)
Definition in_range (R : realFieldType) (O : Type) (r : R) (p p' : O -> R) : Prop :=
  exists2 A, 0 < A & forall o, within A r (p o) (p' o).

Lemma exponential_range (R : realFieldType) (I : finType) (t : R) (lo c : int) (q q' : I -> int) :
  1 <= t -> 0 <= c -> (0 < #|I|)%N -> moves lo c q q' ->
  in_range (t ^ c) (exponential t q) (exponential t q').
Proof.
move=> t1 c0 I0 nb; have W0 := total_gt0 t1 q I0; have W0' := total_gt0 t1 q' I0.
exists (t ^ lo * ((\sum_j weight t q j) / (\sum_j weight t q' j))).
  by rewrite mulr_gt0 ?divr_gt0 // power_gt0.
move=> i; have [l h] := weight_within t1 i nb.
rewrite /exponential; set W := \sum_j _ in W0 *; set W' := \sum_j _ in W0' *.
have e (a b : R) : a * (W / W') * (b / W) = a * b / W'.
  rewrite -[LHS]mulrA -[RHS]mulrA; congr (_ * _).
  by rewrite mulrC -mulrA mulKf ?gt_eqF.
split; first by rewrite e ler_wpmul2r ?invr_ge0 // ltW.
by rewrite [X in _ <= X * _]mulrAC e ler_wpmul2r ?invr_ge0 // ltW.
Qed.

(* "Given a model, a row contributes to one cell of each part." *)
Section Cells.
Variables (Row B : finType) (c : Row -> B) (f : Row -> int) (F : int -> nat).
Hypothesis F0 : F 0 = 0%N.
Definition in_cell (o : option Row) (b : B) : int :=
  if o is Some row then if c row == b then f row else 0 else 0.

Lemma cells_of_one row (g : int -> int) : g 0 = 0 ->
  (\sum_b F (g (in_cell (Some row) b)) = F (g (f row)))%N.
Proof.
move=> g0; rewrite (bigD1 (c row)) //= eqxx big1 ?addn0 // => b /negPf ne.
by rewrite eq_sym ne g0.
Qed.

(* "One row more." *)
Lemma cells_more o o' (D : nat) : o = None \/ o' = None ->
  (forall row, (F (f row) <= D)%N) -> (forall row, (F (- f row) <= D)%N) ->
  (\sum_b F (in_cell o' b - in_cell o b) <= D)%N.
Proof.
move=> none le le'; case: o o' none => [row|] [row'|] [] // _.
- under eq_bigr do rewrite sub0r; by rewrite (@cells_of_one row -%R) ?oppr0.
- under eq_bigr do rewrite subr0; by rewrite (@cells_of_one row' id).
- by rewrite big1 // => b _; rewrite subrr.
- by rewrite big1 // => b _; rewrite subrr.
Qed.

(* "Either both are in one cell, or they are in two." *)
Lemma cells_replaced o o' (D E : nat) : (E <= D)%N -> (2 * E <= D)%N ->
  (forall row, (F (f row) <= E)%N) -> (forall row, (F (- f row) <= E)%N) ->
  (forall row row', (F (f row' - f row) <= D)%N) ->
  (\sum_b F (in_cell o' b - in_cell o b) <= D)%N.
Proof.
move=> ED E2 le le' both.
have more : o = None \/ o' = None -> (\sum_b F (in_cell o' b - in_cell o b) <= D)%N.
  by move=> none; apply: leq_trans ED; apply: cells_more.
case: o o' more => [row|] [row'|] more; try by (apply: more; auto).
have [same|ne] := eqVneq (c row) (c row').
  rewrite (bigD1 (c row)) //= -same eqxx big1 ?addn0 // => b /negPf ne.
  by rewrite eq_sym ne subrr.
have ne' : c row' != c row by rewrite eq_sym.
apply: leq_trans E2; rewrite mul2n -addnn (bigD1 (c row)) //= (bigD1 (c row')) //=.
rewrite !eqxx (negPf ne) (negPf ne') sub0r subr0 big1 ?addn0 ?leq_add //.
by move=> b /andP[/negPf n1 /negPf n2]; rewrite ![_ == b]eq_sym n1 n2 subrr.
Qed.

End Cells.

Section Fit.
(* Individuals, parts (features or pairs), cells of a part, and rows: an individual that is not in
   the data has none. *)
Variables (R : realFieldType) (U Part B Row : finType).
Notation data := {ffun U -> option Row}.
Notation vector := {ffun B -> int}.
Notation counted := {ffun bool -> int}.
Notation release := (Part * vector * vector)%type.

(* "One row more", and "another row takes its place". *)
Definition row_more (d d' : data) : Prop :=
  exists v, (d v = None \/ d' v = None) /\ forall u, u != v -> d u = d' u.
Definition row_replaced (d d' : data) : Prop := exists v, forall u, u != v -> d u = d' u.

(* All that was released before round j; the model is a function of it. *)
Fixpoint past (j : nat) : eqType :=
  if j is j.+1 then [eqType of past j * release] else [eqType of counted].

Variables (label : Row -> bool) (cell : Part -> Row -> B).
Variables (residual curvature : forall j, past j -> Row -> int) (C H : nat).

(* "The counts of the two labels"; "G_b and K_b are the sums of r and of h over the rows in cell
   b". *)
Definition label_counts (d : data) : counted :=
  [ffun y => \sum_u if d u is Some row then (label row == y)%:Z else 0].
Definition cell_sums (i : Part) (f : Row -> int) (d : data) : vector :=
  [ffun b => \sum_u if d u is Some row then if cell i row == b then f row else 0 else 0].

(* "Score of a part": the sum of |G_b|. *)
Definition score (f : Row -> int) (d : data) (i : Part) : int := \sum_b `|cell_sums i f d b|.

(* "The choice of a part is a draw of the exponential mechanism", of weights t_j ^ u_i in round j;
   noise of its own law for the counts, and in each round for G and for K. *)
Variables (t : nat -> R) (noise0 : counted -> R) (noiseG noiseK : nat -> vector -> R).
Definition fit_round j (d : data) (h : past j) : release -> R :=
  then_ (then_ (exponential (t j) (score (residual h) d))
    (fun i => noisy (noiseG j) (cell_sums i (residual h) d)))
    (fun o => noisy (noiseK j) (cell_sums o.1 (curvature h) d)).
Fixpoint fit (d : data) (j : nat) : past j -> R :=
  if j is j.+1 then then_ (@fit d j) (@fit_round j d) else noisy noise0 (label_counts d).

(* How far two laws are apart, by a relation that adds up under adaptive composition, and what its
   values allow: delta rho r at r = e^epsilon. *)
Variables (near : R -> forall O : eqType, (O -> R) -> (O -> R) -> Prop) (delta : R -> R -> R).
Arguments near _ {O} _ _.
Hypotheses
  (near_composes : forall a b (O1 O2 : eqType) (p p' : O1 -> R) (q q' : O1 -> O2 -> R),
    countable_law p -> countable_law p' -> (forall o, countable_law (q o)) ->
    (forall o, countable_law (q' o)) -> near a p p' -> (forall o, near b (q o) (q' o)) ->
    near (a + b) (then_ p q) (then_ p' q'))
  (near_close : forall a (O : eqType) (p p' : O -> R) r, 0 <= r -> near a p p' ->
    countably_close p p' r (delta a r)).

(* What a choice of range r costs, and each noise at a squared distance. *)
Variables (of_range : R -> R) (of_counts : nat -> R) (of_G of_K : nat -> nat -> R).
Hypotheses (range_near : forall r (p p' : Part -> R), is_law p -> is_law p' -> in_range r p p' ->
    near (of_range r) p p')
  (counts_near : forall D (x x' : counted), (\sum_y `|x' y - x y| ^ 2 <= D)%N ->
    near (of_counts D) (noisy noise0 x) (noisy noise0 x'))
  (G_near : forall j D (x x' : vector), (\sum_b `|x' b - x b| ^ 2 <= D)%N ->
    near (of_G j D) (noisy (noiseG j) x) (noisy (noiseG j) x'))
  (K_near : forall j D (x x' : vector), (\sum_b `|x' b - x b| ^ 2 <= D)%N ->
    near (of_K j D) (noisy (noiseK j) x) (noisy (noiseK j) x')).
Hypotheses (t1 : forall j, 1 <= t j) (some_part : (0 < #|Part|)%N).
Hypotheses (law0 : countable_law noise0) (lawG : forall j, countable_law (noiseG j))
  (lawK : forall j, countable_law (noiseK j)).

(* The bounds of the public tables. *)
Hypotheses (residual_in : forall j (h : past j) row, `|residual h row| <= C%:Z)
  (curvature_in : forall j (h : past j) row, 0 <= curvature h row <= H%:Z).

Let choice_law j q : is_law (exponential (t j) q : Part -> R).
Proof. exact: exponential_law. Qed.

Let choice_countable j q : countable_law (exponential (t j) q : Part -> R).
Proof.
have [p0 p1] := choice_law j q; split=> // s us; rewrite -p1 -[X in _ <= X]big_enum.
by apply: part_sum => //; [exact: enum_uniq | move=> o _; rewrite mem_enum].
Qed.

Let fit_round_law j d (h : past j) : countable_law (fit_round d h).
Proof.
by apply: then_law => [|o]; [apply: then_law => // i |]; apply: noisy_law.
Qed.

Let fit_law d j : countable_law (@fit d j).
Proof. by elim: j => [|j IH] /=; [apply: noisy_law | apply: then_law]. Qed.

(* All rounds, once the sensitivities of a round are known. *)
Lemma rounds_near d d' D0 DG DK Delta n :
  (\sum_y `|label_counts d' y - label_counts d y| ^ 2 <= D0)%N ->
  (forall j (h : past j) i, (\sum_b
    `|cell_sums i (residual h) d' b - cell_sums i (residual h) d b| ^ 2 <= DG)%N) ->
  (forall j (h : past j) i, (\sum_b
    `|cell_sums i (curvature h) d' b - cell_sums i (curvature h) d b| ^ 2 <= DK)%N) ->
  (forall j (h : past j) i, `|score (residual h) d' i - score (residual h) d i| <= Delta%:Z) ->
  near (of_counts D0 +
      \sum_(j < n) (of_range (t j ^ (Delta%:Z + Delta%:Z)) + of_G j DG + of_K j DK))
    (@fit d n) (@fit d' n).
Proof.
move=> s0 sG sK sU; elim: n => [|n IH] /=; first by rewrite big_ord0 addr0; apply: counts_near.
rewrite big_ord_recr addrA /=; apply: near_composes => // h.
have range : in_range (t n ^ (Delta%:Z + Delta%:Z)) (exponential (t n) (score (residual h) d))
    (exponential (t n) (score (residual h) d')).
  apply: (@exponential_range _ _ (t n) (- Delta%:Z)) => // i; rewrite addKr -ler_norml.
  exact: sU.
have choice_G e : countable_law (then_ (exponential (t n) (score (residual h) e))
    (fun i => noisy (noiseG n) (cell_sums i (residual h) e))).
  by apply: then_law => // i; apply: noisy_law.
apply: near_composes; try exact: choice_G; try (by move=> o; apply: noisy_law).
  apply: near_composes; try exact: choice_countable; try (by move=> i; apply: noisy_law).
    by apply: range_near => //; apply: choice_law.
  by move=> i; apply: G_near.
by move=> o; apply: K_near.
Qed.

(* The sums move by what one individual contributes. *)
Let sums_move (O : finType) (c : Row -> O) (f : Row -> int) (d d' : data) v b :
  (forall u, u != v -> d u = d' u) ->
  (\sum_u if d' u is Some row then if c row == b then f row else 0 else 0) -
  (\sum_u if d u is Some row then if c row == b then f row else 0 else 0) =
  in_cell c f (d' v) b - in_cell c f (d v) b.
Proof.
move=> same; rewrite (bigD1 v) //= [X in _ - X](bigD1 v) //= opprD addrACA -[RHS]addr0.
congr (_ + _); apply/eqP; rewrite subr_eq0; apply/eqP; apply: eq_bigr => u ne.
by rewrite same.
Qed.

Let labels_move (d d' : data) v y : (forall u, u != v -> d u = d' u) ->
  label_counts d' y - label_counts d y =
  in_cell label (fun=> 1) (d' v) y - in_cell label (fun=> 1) (d v) y.
Proof.
move=> same; rewrite -(sums_move label (fun=> 1) y same) !ffunE.
by congr (_ - _); apply: eq_bigr => u _; case: (_ u) => // row; case: (_ == _).
Qed.

Let cells_move i f (d d' : data) v b : (forall u, u != v -> d u = d' u) ->
  cell_sums i f d' b - cell_sums i f d b =
  in_cell (cell i) f (d' v) b - in_cell (cell i) f (d v) b.
Proof. by move=> same; rewrite !ffunE; apply: sums_move. Qed.

(* "|.| moves by at most as much as its argument." *)
Let score_moves f (d d' : data) i (D : nat) :
  (\sum_b `|(cell_sums i f d' b - cell_sums i f d b)%R| <= D)%N ->
  `|score f d' i - score f d i| <= D%:Z.
Proof.
rewrite -lez_nat => le; apply: le_trans le; rewrite /score -sumrB.
apply: (le_trans (ler_norm_sum _ _ _)); rewrite (big_morph Posz PoszD (erefl (Posz 0))).
by apply: ler_sum => b _; rewrite abszE; apply: ler_dist_dist.
Qed.

Let residual_le j (h : past j) row : (`|residual h row| <= C)%N.
Proof. by rewrite -lez_nat abszE. Qed.

Let curvature_le j (h : past j) row : (`|curvature h row| <= H)%N.
Proof. by rewrite -lez_nat abszE; have /andP[h0 h1] := curvature_in h row; rewrite ger0_norm. Qed.

Let square_le (z : int) (D : nat) : (`|z| <= D)%N -> (`|z| ^ 2 <= D ^ 2)%N.
Proof. by rewrite leq_exp2r. Qed.

(* What n rounds cost at squared distances D0, DG and DK and a change of scores by Delta. *)
Definition fit_cost (D0 DG DK Delta n : nat) : R :=
  of_counts D0 + \sum_(j < n) (of_range (t j ^ (Delta%:Z + Delta%:Z)) + of_G j DG + of_K j DK).

(* Add-remove: 1; C^2, H^2, and C. *)
Theorem additive_fit_private n r : 0 <= r -> countably_private row_more (fun d => @fit d n) r
  (delta (fit_cost 1 (C ^ 2) (H ^ 2) C n) r).
Proof.
move=> r0 d d' [v [none same]] S a a'; apply: countably_close_Pr => //; apply: near_close => //.
apply: rounds_near => [|j h i|j h i|j h i].
- under eq_bigr do rewrite (labels_move _ same).
  by apply: (@cells_more _ _ _ _ (fun z => `|z| ^ 2)%N).
- under eq_bigr do rewrite (cells_move _ _ _ same).
  by apply: (@cells_more _ _ _ _ (fun z => `|z| ^ 2)%N) => // row; rewrite ?abszN square_le.
- under eq_bigr do rewrite (cells_move _ _ _ same).
  by apply: (@cells_more _ _ _ _ (fun z => `|z| ^ 2)%N) => // row; rewrite ?abszN square_le.
apply: score_moves; under eq_bigr do rewrite (cells_move _ _ _ same).
by apply: (@cells_more _ _ _ _ absz) => // row; rewrite ?abszN.
Qed.

(* Replace: 2; 4 C^2, 2 H^2, and 2 C. *)
Theorem additive_fit_replace n r : 0 <= r -> countably_private row_replaced (fun d => @fit d n) r
  (delta (fit_cost 2 (4 * C ^ 2) (2 * H ^ 2) (2 * C) n) r).
Proof.
move=> r0 d d' [v same] S a a'; apply: countably_close_Pr => //; apply: near_close => //.
have twice row row' j (h : past j) : (`|(residual h row' - residual h row)%R| <= 2 * C)%N.
  by rewrite -lez_nat abszE (le_trans (ler_norm_sub _ _)) // mul2n -addnn PoszD ler_add.
apply: rounds_near => [|j h i|j h i|j h i].
- under eq_bigr do rewrite (labels_move _ same).
  by apply: (@cells_replaced _ _ _ _ (fun z => `|z| ^ 2)%N _ _ _ 2 1).
- under eq_bigr do rewrite (cells_move _ _ _ same).
  apply: (@cells_replaced _ _ _ _ (fun z => `|z| ^ 2)%N _ _ _ _ (C ^ 2)) => //.
  + by rewrite leq_pmull.
  + by rewrite leq_mul2r orbT.
  + by move=> row; rewrite square_le.
  + by move=> row; rewrite abszN square_le.
  + move=> row row'; have -> : (4 * C ^ 2 = (2 * C) ^ 2)%N by rewrite expnMn.
    exact: square_le.
- under eq_bigr do rewrite (cells_move _ _ _ same).
  apply: (@cells_replaced _ _ _ _ (fun z => `|z| ^ 2)%N _ _ _ _ (H ^ 2)) => //.
  + by rewrite leq_pmull.
  + by move=> row; rewrite square_le.
  + by move=> row; rewrite abszN square_le.
  + move=> row row'; apply: (@leq_trans (H ^ 2)); last by rewrite leq_pmull.
    apply: square_le; rewrite -lez_nat abszE ler_norml.
    have /andP[a0 a1] := curvature_in h row; have /andP[b0 b1] := curvature_in h row'.
    rewrite ler_subl_addr (le_trans b1) ?ler_addl // andbT ler_subr_addr (le_trans _ b0) //.
    by rewrite addrC subr_le0.
apply: score_moves; under eq_bigr do rewrite (cells_move _ _ _ same).
apply: (@cells_replaced _ _ _ _ absz _ _ _ _ C) => //; first by rewrite leq_pmull.
by move=> row; rewrite abszN.
Qed.

End Fit.
