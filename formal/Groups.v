(* The best of every group.

   Page: docs/proofs/groups.md. Rows of group g of the individuals that count in it are what a
   mechanism sees of the data in g; each group has a draw of its own. *)
From Privmax Require Import Prelude Definitions Scores Composition LimitedDomain GapTest.

Section Table.
Variables (R : realFieldType) (G O : finType).
Implicit Types (p : G -> O -> R) (t u : {ffun G -> O}) (f : {ffun G -> O} -> R) (s : seq G).

(* One outcome for each group, "all draws independent". *)
Definition table p t : R := \prod_g p g (t g).

Lemma table_law p : (forall g, is_law (p g)) -> is_law (table p).
Proof.
move=> laws; split=> [t|]; first by apply: prodr_ge0 => g _; case: (laws g).
rewrite -(bigA_distr_bigA p) big1 // => g _; by case: (laws g).
Qed.

(* The mean of f if the groups of s are drawn one after the other, and the others are as in t. *)
Definition put t g o : {ffun G -> O} := [ffun g' => if g' == g then o else t g'].
Fixpoint mean p s f t : R :=
  if s is g :: s' then \sum_o p g o * mean p s' f (put t g o) else f t.

Lemma mean_sum p s f t : uniq s ->
  mean p s f t = \sum_(u : {ffun G -> O})
    (\prod_g (if g \in s then p g (u g) else (u g == t g)%:R)) * f u.
Proof.
elim: s t => [|g s IH] t /=.
  move=> _; rewrite (bigD1 t) //= [X in X * _]big1 ?mul1r => [|g _]; last by rewrite eqxx.
  rewrite big1 ?addr0 // => u /eqP ut; have [g gt] : exists g, u g != t g.
    by apply/existsP; rewrite -negb_forall; apply/negP => /forallP e; apply: ut; apply/ffunP => g;
      apply/eqP.
  by rewrite (bigD1 g) //= (negPf gt) !mul0r.
case/andP=> gs us; under eq_bigr do rewrite IH // big_distrr /=.
rewrite exchange_big /=; apply: eq_bigr => u _.
under eq_bigr do rewrite mulrA; rewrite -big_distrl /=; congr (_ * _).
rewrite [RHS](bigD1 g) //= inE eqxx /= (bigD1 (u g)) //= [X in _ + X]big1 ?addr0.
  rewrite (bigD1 g) //= (negPf gs) ffunE !eqxx mul1r; congr (_ * _); apply: eq_bigr => g' ne.
  by rewrite inE (negPf ne) /= ffunE (negPf ne).
move=> o ne; rewrite (bigD1 g) //= (negPf gs) ffunE eqxx eq_sym (negPf ne) mul0r mulr0.
by [].
Qed.

Lemma mean_in p s f t : (forall g, is_law (p g)) -> (forall u, 0 <= f u <= 1) ->
  0 <= mean p s f t <= 1.
Proof.
move=> laws f01; elim: s t => [|g s IH] t //=; have [p0 p1] := laws g; apply/andP; split.
  by apply: sumr_ge0 => o _; rewrite mulr_ge0 //; case/andP: (IH (put t g o)).
rewrite -p1; apply: ler_sum => o _; rewrite ler_pimulr //.
by case/andP: (IH (put t g o)).
Qed.

(* "by basic composition of m private mechanisms" *)
Lemma mean_close p p' (r delta : G -> R) s f t :
  (forall g, is_law (p g)) -> (forall g, is_law (p' g)) -> (forall u, 0 <= f u <= 1) ->
  (forall g, 0 <= r g) -> (forall g, 0 <= delta g) ->
  (forall g, close (p g) (p' g) (r g) (delta g)) ->
  mean p s f t <= (\prod_(g <- s) r g) * mean p' s f t + \sum_(g <- s) delta g.
Proof.
move=> laws laws' f01 r0 d0 cl; elim: s t => [|g s IH] t /=.
  by rewrite !big_nil mul1r addr0.
rewrite !big_cons; set r' := \prod_(j <- s) r j; set e := \sum_(j <- s) delta j.
have [p0 p1] := laws g; have [p'0 p'1] := laws' g.
have r'0 : 0 <= r' by apply: prodr_ge0 => *; apply: r0.
have e0 : 0 <= e by apply: sumr_ge0 => *; apply: d0.
have m0 o : 0 <= r' * mean p' s f (put t g o).
  by rewrite mulr_ge0 //; case/andP: (@mean_in p' s f (put t g o) laws' f01).
pose h o := Num.min 1 (r' * mean p' s f (put t g o)).
have h01 o : 0 <= h o <= 1 by rewrite /h le_minr ler01 m0 /= le_minl lexx.
apply: (@le_trans _ _ (\sum_o p g o * h o + e)).
  rewrite -[e]mul1r -p1 big_distrl /= -big_split /=; apply: ler_sum => o _.
  rewrite -mulrDr; apply: ler_wpmul2l => //; rewrite /h addr_minl le_minr IH andbT.
  by have /andP[_ le1] := @mean_in p s f (put t g o) laws f01; rewrite (le_trans le1) // ler_addl.
apply: (le_trans (ler_add (close_mean (r0 g) p'0 (cl g) h01) (lexx e))).
rewrite -addrA ler_add2r -mulrA; apply: ler_wpmul2l => //.
rewrite big_distrr /=; apply: ler_sum => o _.
by rewrite mulrCA; apply: ler_wpmul2l => //; rewrite /h le_minl lexx orbT.
Qed.

(* Independent draws are as close as the sums of what is spent on those that differ. *)
Lemma table_close p p' (r delta : G -> R) :
  (forall g, is_law (p g)) -> (forall g, is_law (p' g)) ->
  (forall g, 0 <= r g) -> (forall g, 0 <= delta g) ->
  (forall g, close (p g) (p' g) (r g) (delta g)) ->
  close (table p) (table p') (\prod_g r g) (\sum_g delta g).
Proof.
move=> laws laws' r0 d0 cl S; case: (pickP (mem S)) => [t _|none]; last first.
  rewrite /Pr !(big_pred0 _ _ _ _ none) mulr0 add0r; apply: sumr_ge0 => *; exact: d0.
have eq q : Pr (table q) S = mean q (enum G) (fun u => (u \in S)%:R) t.
  rewrite mean_sum ?enum_uniq // /Pr big_mkcond /=; apply: eq_bigr => u _.
  rewrite -mulrb mulr_natr; congr (_ *+ _); apply: eq_bigr => g _.
  by rewrite mem_enum.
rewrite !eq; have := @mean_close p p' r delta (enum G) (fun u => (u \in S)%:R) t laws laws'.
rewrite !big_enum /=; apply=> // u; by case: (u \in S); rewrite /= ?lexx ler01.
Qed.

End Table.

Section Groups.
(* Individuals, groups and rows. An individual that is not in the data has no rows. *)
Variables (R : realFieldType) (U G : finType) (Row : eqType).
Notation data := {ffun U -> seq Row}.

(* "Neighbors differ by all rows of one individual." *)
Definition one_more (d d' : data) : Prop :=
  exists v, (d v = [::] \/ d' v = [::]) /\ forall u, u != v -> d u = d' u.

Lemma one_more_sym d d' : one_more d d' -> one_more d' d.
Proof.
by case=> v [e same]; exists v; split=> [|u ne]; [case: e; [right | left] | rewrite same].
Qed.

(* The group that a row names, if any, and the groups in which an individual counts: at most g, and
   "a function of R_u alone". Any such function will do. *)
Variables (group : Row -> option G) (counts_in : seq Row -> {set G}) (g : nat).
Hypothesis at_most : forall rows, (#|counts_in rows| <= g)%N.

(* "D_gamma is what is left of the data in group gamma: the rows of group gamma of the individuals
   that count in it." *)
Definition part (d : data) (c : G) : data :=
  [ffun u => if c \in counts_in (d u) then [seq x <- d u | group x == Some c] else [::]].

(* "All others count in the same groups as before, with the same rows." *)
Lemma part_neighbor d d' : one_more d d' ->
  exists T : {set G}, (#|T| <= g)%N /\
    forall c, if c \in T then one_more (part d c) (part d' c) else part d c = part d' c.
Proof.
suff one (e e' : data) v : e v = [::] -> (forall u, u != v -> e u = e' u) ->
    exists T : {set G}, (#|T| <= g)%N /\
      forall c, if c \in T then one_more (part e c) (part e' c) else part e c = part e' c.
  case=> v [[e|e] same]; first exact: one e same.
  have [|T [size parts]] := one _ d v e; first by move=> u ne; rewrite same.
  exists T; split=> // c; have := parts c; case: ifP => _ // nb; exact: one_more_sym.
move=> e0 same; exists (counts_in (e' v)); split=> // c; case: ifP => in_c.
  exists v; split; first by left; rewrite ffunE e0; case: ifP.
  by move=> u ne; rewrite !ffunE same.
apply/ffunP => u; rewrite !ffunE; case: (altP (u =P v)) => [->|ne]; last by rewrite same.
by rewrite in_c e0; case: ifP.
Qed.

(* "Let M be (epsilon, delta)-private. The table, all draws independent, is (g epsilon, g
   delta)-private." *)
Definition groups (O : finType) (M : data -> O -> R) (d : data) : {ffun G -> O} -> R :=
  table (fun c => M (part d c)).

Theorem groups_private (O : finType) (M : data -> O -> R) r delta : 1 <= r -> 0 <= delta ->
  (forall d, is_law (M d)) -> private one_more M r delta ->
  private one_more (groups M) (r ^+ g) (delta *+ g).
Proof.
move=> r1 d0 laws priv d d' nb; have [T [size parts]] := part_neighbor nb.
have r0 : 0 <= r by apply: le_trans r1.
have cl c : close (M (part d c)) (M (part d' c)) (if c \in T then r else 1)
    (if c \in T then delta else 0).
  have := parts c; case: ifP => _ h; first exact: priv.
  by rewrite h => S; rewrite mul1r addr0.
have := @table_close _ _ _ (fun c => M (part d c)) (fun c => M (part d' c)) _ _
  (fun c => laws _) (fun c => laws _) _ _ cl.
rewrite -!big_mkcond /= prodr_const sumr_const => all S.
apply: (le_trans (all _ _ S)) => [c|c|]; try by case: ifP => _; rewrite ?ler01.
apply: ler_add; last exact: ler_wpmuln2l.
apply: ler_wpmul2r; last by rewrite ler_weexpn2l.
by apply: Pr_ge0; case: (table_law (fun c => laws (part d' c))).
Qed.

Variable O : finType.

(* Open groups: "Each group is released with probability pi(n), each by itself, and for each
   released group M(D_gamma) is drawn"; n is "the number of individuals that count", and None is a
   group that is not released. *)
Definition people (d : data) : nat := #|[set u | d u != [::]]|.
Definition found (r delta : R) d (b : bool) : R :=
  if b then chance r delta (people d) else 1 - chance r delta (people d).
Definition open_draw (r delta : R) (M : data -> O -> R) d (o : option O) : R :=
  if o is Some x then found r delta d true * M d x else found r delta d false.
Definition open_groups (r delta : R) (M : data -> O -> R) d : {ffun G -> option O} -> R :=
  groups (open_draw r delta M) d.

(* "Adding an individual to D_gamma raises n_gamma by 1." *)
Lemma people_one_more d d' : one_more d d' ->
  [\/ people d' = people d, people d' = (people d).+1 | people d = (people d').+1].
Proof.
case=> v [_ same].
have split (e : data) : people e = ((e v != [::]) + #|[set u | e u != [::]] :\ v|)%N.
  by rewrite /people (cardsD1 v) inE.
have rest : [set u | d u != [::]] :\ v = [set u | d' u != [::]] :\ v.
  by apply/setP => u; rewrite !inE; case: eqP => //= /eqP ne; rewrite same.
rewrite !split rest; case: (d v != [::]); case: (d' v != [::]); rewrite ?add0n ?add1n.
- by constructor 1.
- by constructor 3.
- by constructor 2.
- by constructor 1.
Qed.

Section Found.
Variables (r delta : R).
Hypotheses (r1 : 1 <= r) (d0 : 0 <= delta) (d1 : delta <= 1).

Let c01 n : 0 <= chance r delta n <= 1. Proof. exact: chance_in. Qed.

Lemma found_law d : is_law (found r delta d).
Proof.
have /andP[c0 c1] := c01 (people d); split; first by case; rewrite /found ?subr_ge0.
by rewrite big_bool /found /= addrC subrK.
Qed.

(* "The first part is (epsilon1, delta1)-private by the inequalities of one key each." *)
Lemma found_private : private one_more (found r delta) r delta.
Proof.
move=> d d' nb S; have pr q : Pr q S = (if true \in S then q true else 0) +
    (if false \in S then q false else 0) by rewrite /Pr big_mkcond big_bool.
rewrite !pr /found /=.
have r0 : 0 <= r by apply: le_trans r1.
set n := people d; set n' := people d'.
have c0 m : 0 <= chance r delta m by case/andP: (c01 m).
have c1 m : 0 <= 1 - chance r delta m by rewrite subr_ge0; case/andP: (c01 m).
have more a : 0 <= a -> a <= r * a + delta.
  by move=> a0; rewrite -[X in X <= _]addr0 ler_add // ler_pemull.
have whole : 1 <= r + delta by rewrite -[X in X <= _]addr0 ler_add.
have yes : chance r delta n <= r * chance r delta n' + delta.
  rewrite /n /n'; case: (people_one_more nb) => ->; [exact: more | | exact: chance_up].
  by apply: le_trans (more _ (c0 _)); apply: chance_le.
have no : 1 - chance r delta n <= r * (1 - chance r delta n') + delta.
  rewrite /n /n'; case: (people_one_more nb) => ->; [exact: more | exact: chance_down | ].
  by apply: le_trans (more _ (c1 _)); rewrite ler_add2l ler_opp2; apply: chance_le.
case: (true \in S); case: (false \in S); rewrite ?(addr0, add0r, mulr0) //.
by rewrite [X in X <= _]addrC [X in r * X]addrC !subrK mulr1.
Qed.

(* One key each: "A key with n individuals is released with probability pi(n), each by itself. This
   is (epsilon, delta)-private for all keys together", as every individual counts for one key. *)
Theorem one_key_each_private : (g <= 1)%N ->
  private one_more (groups (found r delta)) r delta.
Proof.
move=> g1 d d' nb S; have r0 : 0 <= r by apply: le_trans r1.
apply: (le_trans (groups_private r1 d0 found_law found_private nb S)).
have P0 : 0 <= Pr (groups (found r delta) d') S.
  by apply: Pr_ge0; case: (table_law (fun c => found_law (part d' c))).
apply: ler_add; last by rewrite -[X in _ <= X]mulr1n; exact: ler_wpmuln2l.
by apply: ler_wpmul2r => //; rewrite -[X in _ <= X]expr1; exact: ler_weexpn2l.
Qed.

(* "As pi(0) = 0, groups in which nobody counts are never released." *)
Theorem absent_group M d : people d = 0%N -> open_draw r delta M d None = 1.
Proof. by rewrite /= /found => ->; rewrite subr0. Qed.

Let draw (M : data -> O -> R) (b : bool) : data -> option O -> R :=
  if b then post M (@Some O) else fun=> fun x => (x == None)%:R.

Let draw_law M b d : (forall d, is_law (M d)) -> is_law (draw M b d).
Proof.
move=> laws; case: b; first exact: post_law.
by split=> [o|]; rewrite ?ler0n // (bigD1 None) //= big1 ?addr0 // => o /negPf->.
Qed.

Let open_draw_post M d o :
  open_draw r delta M d o = post (compose (found r delta) (draw M)) (fun x => x.2) d o.
Proof.
rewrite /post (eq_bigr (fun x => compose (found r delta) (draw M) d (x.1, x.2))); last by case.
rewrite -(pair_big_dep xpredT (fun _ x => x == o)
  (fun b x => compose (found r delta) (draw M) d (b, x))) /=.
rewrite big_bool !big_pred1_eq /compose /= /post; case: o => [x|] /=.
  by rewrite mulr0 addr0 (big_pred1 x).
by rewrite mulr1 big_pred0 ?mulr0 ?add0r.
Qed.

Lemma open_draw_law M d : (forall d, is_law (M d)) -> is_law (open_draw r delta M d).
Proof.
move=> laws; have [p0 p1] : is_law (post (compose (found r delta) (draw M)) (fun x => x.2) d).
  apply: post_law; split=> [[b o]|].
    by rewrite mulr_ge0 //; [case: (found_law d) | case: (draw_law b d laws)].
  rewrite /compose -(pair_bigA _ (fun b o => found r delta d b * draw M b d o)) /=.
  have [_ <-] := found_law d; apply: eq_bigr => b _; rewrite -big_distrr /=.
  by case: (draw_law b d laws) => _ ->; rewrite mulr1.
by split=> [o|]; [rewrite open_draw_post | rewrite (eq_bigr _ (fun o _ => open_draw_post M d o))].
Qed.

(* "The table is (g (epsilon1 + epsilon2), g (delta1 + delta2))-private." *)
Theorem open_groups_private (M : data -> O -> R) r' delta' : 1 <= r' -> 0 <= delta' ->
  (forall d, is_law (M d)) -> private one_more M r' delta' ->
  private one_more (open_groups r delta M) ((r * r') ^+ g) ((delta + delta') *+ g).
Proof.
move=> r'1 d'0 laws priv; have r'0 : 0 <= r' by apply: le_trans r'1.
apply: (@groups_private _ (open_draw r delta M)).
- by rewrite -[1]mulr1 ler_pmul.
- exact: addr_ge0.
- by move=> d; apply: open_draw_law.
move=> d d' nb S; rewrite /Pr !(eq_bigr _ (fun o _ => open_draw_post M _ o)).
move: d d' nb S; apply: post_processing; apply: basic_composition => //.
- exact: le_trans r1.
- exact: found_law.
- by move=> *; apply: draw_law.
- exact: found_private.
case=> d d' nb; first by apply: post_close; apply: priv.
move=> S; rewrite -[X in X <= _]addr0; apply: ler_add => //; apply: ler_pemull => //.
by apply: Pr_ge0 => o; apply: ler0n.
Qed.

End Found.
End Groups.
