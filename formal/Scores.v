(* Scores, neighbors, order statistics, clipping, and who slips.

   Pages: docs/proofs/README.md ("Conventions"), docs/proofs/clipping.md ("Clipping"),
   docs/proofs/limited-domain.md ("Growth").

   A finite universe of candidates I. The dummies of an open universe are candidates like any other,
   as many of them as there are ranks to look at. *)
From Privmax Require Import Prelude.

Section Scores.
Variable I : finType.
Implicit Types (q : I -> int) (i j : I).

(* "replace: every score moves by at most s, in any direction." replace is s = 1; see drift. *)
Definition replace_by (s : int) q q' : Prop := forall i, `|q' i - q i| <= s.
Definition replace q q' : Prop := replace_by 1 q q'.

(* "add-remove with monotone scores: all scores move the same way, by at most s." *)
Definition add q q' : Prop := forall i, q i <= q' i <= q i + 1.
Definition add_remove q q' : Prop := add q q' \/ add q' q.

(* "What c stands for: two scores drift apart by at most c s between neighbors." All scores move by
   an amount in one interval of length c, which is what every proof uses. With sensitivity s the
   length is c s: nothing below depends on the value of c. *)
Definition moves (lo c : int) q q' : Prop := forall i, lo <= q' i - q i <= lo + c.
Definition drift (c : int) q q' : Prop := exists lo, moves lo c q q'.

Lemma replace_moves s q q' : replace_by s q q' -> moves (- s) (s + s) q q'.
Proof. by move=> nb i; have := nb i; rewrite ler_norml addrA addNr add0r. Qed.

Lemma replace_drift q q' : replace q q' -> drift 2 q q'.
Proof. by exists (-1); apply: (@replace_moves 1). Qed.

Lemma replace_by_sym s q q' : replace_by s q q' -> replace_by s q' q.
Proof. by move=> nb i; rewrite distrC. Qed.

(* "under replace and hence under add-remove" *)
Lemma add_remove_replace q q' : add_remove q q' -> replace q q'.
Proof.
move=> nb i; rewrite ler_norml; case: nb => /(_ i)/andP[a b].
  by rewrite (@le_trans _ _ 0) ?subr_ge0 //= ler_subl_addl.
by rewrite ler_subr_addr addrC ler_subl_addr b /= ler_subl_addl (le_trans a) // ler_addl.
Qed.

Lemma add_remove_drift q q' : add_remove q q' -> drift 1 q q'.
Proof.
case=> nb; [exists 0 | exists (-1)] => i; have /andP[] := nb i.
  by rewrite add0r subr_ge0 ler_subl_addl => -> ->.
by rewrite addNr subr_le0 ler_subr_addr [-1 + _]addrC ler_subl_addr => -> ->.
Qed.

Lemma moves_sym lo c q q' : moves lo c q q' -> moves (- (lo + c)) c q' q.
Proof.
move=> nb i; have /andP[lo_le le_hi] := nb i.
by rewrite [- (lo + c)]opprD subrK -opprD -[q i - _]opprB !ler_opp2 le_hi lo_le.
Qed.

Lemma drift_sym c q q' : drift c q q' -> drift c q' q.
Proof. by case=> lo nb; exists (- (lo + c)); apply: moves_sym. Qed.

(* Ties are broken by a fixed order of all candidates, here that of enum I. before q i j: i stands
   before j, or is j. *)
Definition before q i j : bool :=
  (q j < q i) || ((q i == q j) && (enum_rank i <= enum_rank j)%N).

Lemma before_total q : total (before q).
Proof.
move=> i j; rewrite /before; case: ltgtP => //= _; exact: leq_total.
Qed.

Lemma before_trans q : transitive (before q).
Proof.
move=> j i k; rewrite /before => /orP[ij|/andP[/eqP ij rij]] /orP[jk|/andP[/eqP jk rjk]].
- by rewrite (lt_trans jk ij).
- by rewrite -jk ij.
- by rewrite ij jk.
- by rewrite ij jk eqxx (leq_trans rij rjk) orbT.
Qed.

Lemma before_anti q : antisymmetric (before q).
Proof.
move=> i j; rewrite /before => /andP[].
case: ltgtP => //= _ rij rji; apply: enum_rank_inj; apply/val_inj/eqP.
by rewrite eqn_leq rij.
Qed.

Lemma before_refl q : reflexive (before q).
Proof. by move=> i; rewrite /before eqxx leqnn orbT. Qed.

Lemma before_ge q i j : before q i j -> q j <= q i.
Proof. by case/orP => [/ltW|/andP[/eqP->]]. Qed.

(* All candidates, best first; the rank of a candidate, from 0; the top l. *)
Definition ranking q : seq I := sort (before q) (enum I).
Definition rank q i : nat := index i (ranking q).
Definition top q (l : nat) : {set I} := [set i | (rank q i < l)%N].

(* "Order statistics are q_(1) >= q_(2) >= ..." Here from 0: stat q r is q_(r+1). *)
Definition stat q (r : nat) : int := nth 0 (map q (ranking q)) r.

Lemma size_ranking q : size (ranking q) = #|I|.
Proof. by rewrite size_sort -cardE. Qed.

Lemma mem_ranking q i : i \in ranking q.
Proof. by rewrite mem_sort mem_enum. Qed.

Lemma uniq_ranking q : uniq (ranking q).
Proof. by rewrite sort_uniq enum_uniq. Qed.

Lemma rank_lt q i : (rank q i < #|I|)%N.
Proof. by rewrite -(size_ranking q) index_mem mem_ranking. Qed.

Lemma nth_rank q i0 i : nth i0 (ranking q) (rank q i) = i.
Proof. by rewrite nth_index // mem_ranking. Qed.

Lemma rank_nth q i0 r : (r < #|I|)%N -> rank q (nth i0 (ranking q) r) = r.
Proof. by move=> lt; rewrite /rank index_uniq ?size_ranking ?uniq_ranking. Qed.

Lemma stat_nth q i0 r : (r < #|I|)%N -> stat q r = q (nth i0 (ranking q) r).
Proof. by move=> lt; rewrite /stat (nth_map i0) // size_ranking. Qed.

Lemma stat_rank q i : stat q (rank q i) = q i.
Proof. by rewrite (stat_nth q i) ?rank_lt // nth_rank. Qed.

Lemma rank_before q i j : (rank q i <= rank q j)%N -> before q i j.
Proof.
move=> le; rewrite -(nth_rank q i i) -(nth_rank q i j).
have srt : sorted (before q) (ranking q) by apply: sort_sorted; apply: before_total.
apply: (sorted_leq_nth (@before_trans q) (@before_refl q) i srt) => //;
  by rewrite inE size_ranking rank_lt.
Qed.

Lemma before_rank q i j : before q i j = (rank q i <= rank q j)%N.
Proof.
apply/idP/idP; last exact: rank_before.
move=> ij; rewrite leqNgt; apply/negP => lt.
have ji := rank_before (ltnW lt).
have eij : i = j by apply: (@before_anti q); rewrite ij ji.
by move: lt; rewrite eij ltnn.
Qed.

Lemma rank_inj q : injective (rank q).
Proof.
by move=> i j e; rewrite -(nth_rank q i i) e nth_rank.
Qed.

(* Order statistics fall. *)
Lemma stat_le q r s : (r <= s)%N -> (s < #|I|)%N -> stat q s <= stat q r.
Proof.
move=> rs sK; have [i0 _] : exists i0 : I, true.
  by case: (pickP (mem I)) => [i _|/eq_card0 K0]; [exists i | rewrite K0 in sK].
rewrite !(stat_nth q i0) ?(leq_ltn_trans rs) //.
by apply: before_ge; rewrite before_rank !rank_nth ?(leq_ltn_trans rs).
Qed.

(* Everybody in the top l is at least as good as everybody outside, and as q_(l+1). *)
Lemma top_ge q l i j : i \in top q l -> j \notin top q l -> q j <= q i.
Proof.
rewrite !inE -leqNgt => il jl.
by apply: before_ge; rewrite before_rank ltnW // (leq_trans il).
Qed.

Lemma out_top_le q l i : (l < #|I|)%N -> i \notin top q l -> q i <= stat q l.
Proof.
by move=> lK; rewrite inE -leqNgt -stat_rank => le; rewrite stat_le ?rank_lt.
Qed.

Lemma in_top_ge q l i : (l < #|I|)%N -> i \in top q l -> stat q l <= q i.
Proof. by move=> lK; rewrite inE -(stat_rank q i) => /ltnW le; rewrite stat_le. Qed.

Lemma le_stat0 q i : q i <= stat q 0.
Proof. by rewrite -[q i]stat_rank stat_le ?rank_lt. Qed.

(* Sums over the top l are sums over ranks. *)
Lemma mem_top q l i : (i \in top q l) = (i \in take l (ranking q)).
Proof. by rewrite inE in_take ?mem_ranking. Qed.

Lemma card_top q l : (l <= #|I|)%N -> #|top q l| = l.
Proof.
move=> lK; rewrite (eq_card (mem_top q l)).
have /card_uniqP-> : uniq (take l (ranking q)) by rewrite take_uniq ?uniq_ranking.
by rewrite size_takel ?size_ranking.
Qed.

Lemma sum_top (V : zmodType) q l (F : int -> V) : (l <= #|I|)%N ->
  \sum_(i in top q l) F (q i) = \sum_(r < l) F (stat q r).
Proof.
move=> lK; rewrite (eq_bigl _ _ (mem_top q l)) -big_uniq /=; last first.
  by rewrite take_uniq ?uniq_ranking.
rewrite -(big_map q xpredT F) map_take (big_nth 0) size_takel ?size_map ?size_ranking //.
rewrite big_mkord; apply: eq_bigr => r _.
by rewrite nth_take.
Qed.

Lemma top_all q l : (#|I| <= l)%N -> top q l = setT.
Proof. by move=> Kl; apply/setP => i; rewrite !inE (leq_trans (rank_lt q i)). Qed.

Lemma top_sub q l l' : (l <= l')%N -> top q l \subset top q l'.
Proof. by move=> ll'; apply/subsetP => i; rewrite !inE => /leq_trans; apply. Qed.

(* "Fact 1. For every r, q_(r) moves by at most 1, and the same way as the scores when they are
   monotone. The number of candidates with q_i >= t in D is at most the number with q'_i >= t - 1 in
   D'." Here: by an amount in the interval in which the scores move. *)
Lemma stat_moves_up lo q q' r : (forall i, lo <= q' i - q i) -> (r < #|I|)%N ->
  lo <= stat q' r - stat q r.
Proof.
move=> nb rK; rewrite leNgt; apply/negP => lt.
have sub : top q r.+1 \subset top q' r.
  apply/subsetP => i; rewrite inE ltnS => ri; rewrite inE ltnNge; apply/negP => ir.
  have h1 : stat q r <= q i by rewrite -(stat_rank q i) stat_le.
  have h2 : q' i <= stat q' r by rewrite -(stat_rank q' i) stat_le ?rank_lt.
  have := nb i; rewrite leNgt => /negP; apply; apply: le_lt_trans lt.
  exact: ler_sub.
by have := subset_leq_card sub; rewrite !card_top ?ltnn // ltnW.
Qed.

Theorem stat_moves lo c q q' r : moves lo c q q' -> (r < #|I|)%N ->
  lo <= stat q' r - stat q r <= lo + c.
Proof.
move=> nb rK; apply/andP; split.
  by apply: stat_moves_up => // i; case/andP: (nb i).
rewrite -ler_opp2 opprB; apply: stat_moves_up => // i.
by case/andP: (moves_sym nb i).
Qed.

(* The same in the words of the page. *)
Corollary stat_lipschitz s q q' r : replace_by s q q' -> (r < #|I|)%N ->
  `|stat q' r - stat q r| <= s.
Proof.
move=> nb rK; rewrite ler_norml.
by have := stat_moves (replace_moves nb) rK; rewrite addrA addNr add0r.
Qed.

Corollary stat_monotone q q' r : (forall i, q i <= q' i) -> (r < #|I|)%N -> stat q r <= stat q' r.
Proof.
move=> up rK; rewrite -subr_ge0; apply: stat_moves_up => // i.
by rewrite subr_ge0.
Qed.

(* "For a public W >= 0 and a public rank r let q~_i = max(q_i, q_(r) - W)." *)
Definition clip (W : int) (r : nat) q : I -> int := fun i => Num.max (q i) (stat q r - W).

(* "q~ has every sensitivity property that q has": all its scores move in the same interval. *)
Theorem clip_moves W r lo c q q' : (r < #|I|)%N -> moves lo c q q' ->
  moves lo c (clip W r q) (clip W r q').
Proof.
move=> rK nb i; have /andP[i1 i2] := nb i; have /andP[s1 s2] := stat_moves nb rK.
rewrite /clip ler_subr_addr ler_subl_addr.
rewrite ler_subr_addr in i1; rewrite ler_subl_addr in i2.
rewrite ler_subr_addr in s1; rewrite ler_subl_addr in s2.
apply/andP; split; rewrite addr_maxr le_maxl; apply/andP; split; rewrite le_maxr.
- by rewrite i1.
- by rewrite addrA ler_add2r s1 orbT.
- by rewrite i2.
- by rewrite addrA ler_add2r s2 orbT.
Qed.

(* The two properties by name: sensitivity s in any direction, and monotone. *)
Corollary clip_replace W r s q q' : (r < #|I|)%N -> replace_by s q q' ->
  replace_by s (clip W r q) (clip W r q').
Proof.
move=> rK nb i; have := clip_moves W rK (replace_moves nb) i.
by rewrite ler_norml addrA addNr add0r.
Qed.

Corollary clip_add_remove W r q q' : (r < #|I|)%N -> add_remove q q' ->
  add_remove (clip W r q) (clip W r q').
Proof.
have one e e' : (r < #|I|)%N -> add e e' -> add (clip W r e) (clip W r e').
  move=> rK nb i; have m : moves 0 1 e e'.
    by move=> j; have := nb j; rewrite add0r subr_ge0 ler_subl_addl.
  by have := clip_moves W rK m i; rewrite add0r subr_ge0 ler_subl_addl.
by move=> rK [nb|nb]; [left | right]; apply: one.
Qed.

(* "If i is in H but not in H', then q_i' <= q'_(k+1), and since the two drift apart by at most c,
   q_i <= q_(k+1) + c." H and H' are the top l. *)
Lemma slip_le lo c q q' l i : moves lo c q q' -> (l < #|I|)%N ->
  i \in top q l -> i \notin top q' l -> q i <= stat q l + c.
Proof.
move=> nb lK iH iH'; have := out_top_le lK iH'.
have /andP[i1 _] := nb i; have /andP[_ s2] := stat_moves nb lK.
rewrite ler_subr_addr -ler_subr_addl in i1; rewrite ler_subl_addr in s2.
move=> le; apply: (le_trans i1); rewrite ler_subl_addl; apply: (le_trans le).
by apply: (le_trans s2); rewrite addrAC addrA.
Qed.

(* "Let T be the set of candidates whose scores differ between D and D'." *)
Definition touched q q' : {set I} := [set i | q i != q' i].

(* "Lemma. Without clipping, and with ties broken by a fixed order, |H \ H'| <= kappa'. Two
   candidates outside T are in the same order in D and D'. So it cannot be that one outside T leaves
   the top and another outside T enters it. So either all leavers or all entrants are in T, and
   there are as many of one as of the other." *)
Theorem growth_bounds_slips q q' l : (#|top q l :\: top q' l| <= #|touched q q'|)%N.
Proof.
have same : #|top q l :\: top q' l| = #|top q' l :\: top q l|.
  case: (leqP l #|I|) => [lK|/ltnW Kl]; last by rewrite !top_all // !setDv.
  by rewrite !cardsD setIC !card_top.
case: (boolP (top q l :\: top q' l \subset touched q q')) => [/subset_leq_card //|].
case/subsetPn => i; rewrite !inE negbK -!leqNgt => /andP[il' il] /eqP ei.
rewrite same; apply: subset_leq_card; apply/subsetP => j.
rewrite !inE -leqNgt => /andP[jl jl']; apply/negP => /eqP ej.
have : before q i j by rewrite before_rank ltnW // (leq_trans il).
rewrite /before ei ej -/(before q' i j) before_rank leqNgt => /negP; apply.
exact: leq_trans jl' il'.
Qed.

End Scores.
