use talpf_runtime::clause::{Many, ManyReduced, One, Reduced};
use talpf_runtime::{
    Array, Commutative, Concurrent, In, InOut, Iteration, Ix1, JoinHandle, Lend, Matrix, Out,
    Reduction, Region,
};

type Wide = for<'a> fn(&'a String);
type Narrow = fn(&'static String);

fn array(wide: Array<Wide>) -> Array<Narrow> {
    wide
}

fn matrix(wide: Matrix<Wide>) -> Matrix<Narrow> {
    wide
}

fn region(wide: Region<'_, Wide>) -> Region<'_, Narrow> {
    wide
}

fn lend(wide: Lend<Wide>) -> Lend<Narrow> {
    wide
}

fn input(wide: In<Wide>) -> In<Narrow> {
    wide
}

fn output(wide: Out<Wide>) -> Out<Narrow> {
    wide
}

fn inout(wide: InOut<Wide>) -> InOut<Narrow> {
    wide
}

fn concurrent(wide: Concurrent<Wide>) -> Concurrent<Narrow> {
    wide
}

fn commutative(wide: Commutative<Wide>) -> Commutative<Narrow> {
    wide
}

fn reduction(wide: Reduction<Wide>) -> Reduction<Narrow> {
    wide
}

fn one<'r>(wide: One<'r, Lend<Wide>>) -> One<'r, Lend<Narrow>> {
    wide
}

fn many<'r>(wide: Many<'r, Lend<Wide>>) -> Many<'r, Lend<Narrow>> {
    wide
}

fn reduced<'r>(wide: Reduced<'r, Wide, Ix1>) -> Reduced<'r, Narrow, Ix1> {
    wide
}

fn many_reduced<'r>(wide: ManyReduced<'r, Wide, Ix1>) -> ManyReduced<'r, Narrow, Ix1> {
    wide
}

fn handle(wide: JoinHandle<Wide>) -> JoinHandle<Narrow> {
    wide
}

fn iteration<'r>(longer: Iteration<'static>) -> Iteration<'r> {
    longer
}

fn main() {}
